package main

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/firnid/firn"
)

const (
	// wideLayout has 2^17 IDs per millisecond, so that the code is measured and
	// not the limit of the format.
	wideLayout = "bits=time:41.node:5.seq:17,unit=1ms,epoch=2026-01-01T00:00:00Z"
	// twitterShape is the shape that most peers have: 41 bits of milliseconds,
	// 10 of node, 12 of sequence.
	twitterShape = "bits=time:41.node:10.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z"
	// farAhead lets a generator run ahead for the whole measurement.
	farAhead = 1000 * time.Hour
)

// generator makes a generator that starts at once, like one with a grant from a
// store. It fails only if this program is wrong.
func generator(layout string, ahead time.Duration) *firn.Generator {
	g, err := firn.NewGenerator(firn.MustParseLayout(layout), firn.Grant{Node: 1, From: time.Unix(1, 0)}, &firn.Options{MaxAhead: ahead})
	if err != nil {
		panic(err)
	}
	return g
}

func generator128(layout string, ahead time.Duration) *firn.Generator128 {
	g, err := firn.NewGenerator128(firn.MustParseLayout(layout), firn.Grant{Node: 1, From: time.Unix(1, 0)}, &firn.Options{MaxAhead: ahead})
	if err != nil {
		panic(err)
	}
	return g
}

// failed ends a measurement that does not work.
func failed(err error) {
	if err != nil {
		panic(err)
	}
}

// firnNext measures Next, one ID per call.
func firnNext(name, layout string, ahead time.Duration) subject {
	g, ctx := generator(layout, ahead), context.Background()
	return subject{name: name, run: func(n int) {
		var x firn.ID
		for range n {
			id, err := g.Next(ctx)
			failed(err)
			x ^= id
		}
		sink.Store(uint64(x))
	}}
}

func firnTryNext(name, layout string, ahead time.Duration) subject {
	g := generator(layout, ahead)
	return subject{name: name, run: func(n int) {
		var x firn.ID
		for range n {
			id, err := g.TryNext()
			failed(err)
			x ^= id
		}
		sink.Store(uint64(x))
	}}
}

func firnNext128(name, layout string, ahead time.Duration) subject {
	g, ctx := generator128(layout, ahead), context.Background()
	return subject{name: name, run: func(n int) {
		var x firn.ID128
		for range n {
			id, err := g.Next(ctx)
			failed(err)
			x = id
		}
		sink.Store(uint64(x[15]))
	}}
}

// firnFill measures Fill of size IDs at once. Its n counts IDs. Threads share
// the generator, and each has its own slice.
func firnFill(name, layout string, ahead time.Duration, size int) subject {
	g, ctx := generator(layout, ahead), context.Background()
	type buffer struct{ ids []firn.ID }
	own := sync.Pool{New: func() any { return &buffer{make([]firn.ID, size)} }}
	return subject{name: name, run: func(n int) {
		b := own.Get().(*buffer)
		for i := 0; i < n; i += size {
			failed(g.Fill(ctx, b.ids[:min(size, n-i)]))
		}
		sink.Store(uint64(b.ids[0]))
		own.Put(b)
	}}
}

// firnBatch measures NextBatch of size, including all its IDs.
func firnBatch(name, layout string, ahead time.Duration, size int) subject {
	g, ctx := generator(layout, ahead), context.Background()
	return subject{name: name, run: func(n int) {
		var x firn.ID
		for i := 0; i < n; i += size {
			b, err := g.NextBatch(ctx, min(size, n-i))
			failed(err)
			for id := range b.All() {
				x ^= id
			}
		}
		sink.Store(uint64(x))
	}}
}

// firnValid measures the Next of a Prefetcher whose IDs may not grow old.
func firnValid(name string, count int, validity time.Duration) subject {
	return firnNextOf(name, firn.NewPrefetcher(generator(wideLayout, farAhead), count, validity))
}

// firnPrefetch measures a Prefetcher's Next, over a source that answers at
// once.
func firnPrefetch(name string, count int, start bool) subject {
	if start {
		return firnNextOf(name, firn.StartPrefetcher(generator(wideLayout, farAhead), &firn.PrefetchOptions{Count: count, MaxCount: count, Validity: -1}))
	}
	return firnValid(name, count, 0)
}

func firnNextOf(name string, p *firn.Prefetcher) subject {
	ctx := context.Background()
	return subject{name: name, run: func(n int) {
		var x firn.ID
		for range n {
			id, err := p.Next(ctx)
			failed(err)
			x ^= id
		}
		sink.Store(uint64(x))
	}}
}

// A cursor is what a goroutine that needs many IDs has for itself.
type cursor interface {
	Next(context.Context) (firn.ID, error)
}

// newCursor makes a cursor of g if this version of the library has cursors: it
// calls the method Cursor, whose parameters are optional, by reflection. Next
// is then called through an interface, which adds about a nanosecond.
func newCursor(g *firn.Generator) (c cursor, ok bool) {
	m := reflect.ValueOf(g).MethodByName("Cursor")
	if !m.IsValid() {
		return nil, false
	}
	var args []reflect.Value
	for i := range m.Type().NumIn() {
		if m.Type().IsVariadic() && i == m.Type().NumIn()-1 {
			break
		}
		args = append(args, reflect.Zero(m.Type().In(i)))
	}
	for _, out := range m.Call(args) {
		if err, isErr := out.Interface().(error); isErr && err != nil {
			panic(err)
		}
		if x, isCursor := out.Interface().(cursor); isCursor {
			c, ok = x, true
		}
	}
	return c, ok
}

// firnCursor measures a cursor's Next. Each thread has its own cursor of one
// generator.
func firnCursor(name, layout string, ahead time.Duration) (s subject, ok bool) {
	g, ctx := generator(layout, ahead), context.Background()
	first, ok := newCursor(g)
	if !ok {
		return subject{}, false
	}
	own := sync.Pool{New: func() any {
		c, _ := newCursor(g)
		return c
	}}
	own.Put(first)
	return subject{name: name, run: func(n int) {
		c := own.Get().(cursor)
		var x firn.ID
		for range n {
			id, err := c.Next(ctx)
			failed(err)
			x ^= id
		}
		sink.Store(uint64(x))
		own.Put(c)
	}}, true
}
