package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"

	"github.com/firnid/firn"
)

const (
	// wide has 2^17 IDs per millisecond, so that the code is measured and not
	// the limit of the format.
	wide = "bits=time:41.node:5.seq:17,unit=1ms,epoch=2026-01-01T00:00:00Z"
	// usual is the shape that most peers have, with 4096 IDs per millisecond.
	usual = "bits=time:41.node:10.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z"
	// farAhead lets a generator run ahead for the whole measurement.
	farAhead = 1000 * time.Hour
)

var background = context.Background()

// sink receives the results of the loops, so that the compiler cannot remove
// them.
var sink atomic.Uint64

func generator(layout string, ahead time.Duration) *firn.Generator {
	return must(firn.NewGenerator(firn.MustParseLayout(layout), firn.Grant{Node: 1, From: time.Unix(1, 0)}, &firn.Options{MaxAhead: ahead}))
}

// next measures the method Next of a generator, a cursor or a prefetcher.
func next(g firnNext) loop {
	return timed(func(n int) {
		var x firn.ID
		for range n {
			x ^= must(g.Next(background))
		}
		sink.Store(uint64(x))
	})
}

type firnNext interface {
	Next(context.Context) (firn.ID, error)
}

// A counter has its own cache line.
type counter struct {
	_ [64]byte
	n atomic.Uint64
	_ [56]byte
}

// add is the reference of most subjects: no generator whose IDs increase across
// the whole program can be cheaper.
func add() loop {
	c := new(counter)
	return timed(func(n int) {
		for range n {
			c.n.Add(1)
		}
	})
}

// addCounter is the reference of Next: an atomic add, and the counter that
// shows whether the clock's last reading is still fresh. With the tag purego it
// reads the monotonic clock instead, and Next the whole clock.
func addCounter() loop {
	c := new(counter)
	return timed(func(n int) {
		var x uint64
		for range n {
			c.n.Add(1)
			x ^= cycles()
		}
		sink.Store(x)
	})
}

func BenchmarkNext(b *testing.B) {
	g := generator(wide, farAhead)
	direct := timed(func(n int) { // not through an interface
		var x firn.ID
		for range n {
			x ^= must(g.Next(background))
		}
		sink.Store(uint64(x))
	})
	b.Run("clock="+clockSource, func(b *testing.B) { pair(b, direct, addCounter(), "x-add-clock", slice) })
	b.Run("clock="+clockSource+"/to=add", func(b *testing.B) { pair(b, direct, add(), "x-add", slice) })
	g128 := must(firn.NewGenerator128(firn.MustParseLayout("uuidv7"), firn.Grant{Node: 1, From: time.Unix(1, 0)}, &firn.Options{MaxAhead: farAhead}))
	b.Run("uuidv7", func(b *testing.B) { pair(b, each(func() { must(g128.Next(background)) }), add(), "x-add", slice) })
}

// threads measures loops that one thread runs, and two at once. All threads of
// the reference add to one counter.
func threads(b *testing.B, subject func() loop) {
	b.Run("threads=1", func(b *testing.B) { pair(b, subject(), add(), "x-add", slice) })
	b.Run("threads=2", func(b *testing.B) {
		shared := add()
		pair(b, both(subject(), subject()), both(shared, shared), "x-add", 5*time.Millisecond)
	})
}

// both runs two loops at once, and returns the time of the slower one.
func both(one, other loop) loop {
	return func(n int) time.Duration {
		var took [2]time.Duration
		var all sync.WaitGroup
		all.Go(func() { took[1] = other(n) })
		took[0] = one(n)
		all.Wait()
		return max(took[0], took[1])
	}
}

// filling measures one ID of a slice.
func filling(g *firn.Generator) loop {
	ids := make([]firn.ID, 4096)
	return timed(func(n int) {
		for ; n > 0; n -= len(ids) {
			if err := g.Fill(background, ids[:min(n, len(ids))]); err != nil {
				panic(err)
			}
		}
		sink.Store(uint64(ids[0]))
	})
}

func BenchmarkFill(b *testing.B) {
	g := generator(wide, farAhead)
	threads(b, func() loop { return filling(g) })
}

// BenchmarkPrefetch measures the Next of a Prefetcher over a source that
// answers at once.
func BenchmarkPrefetch(b *testing.B) {
	p := firn.NewPrefetcher(generator(wide, farAhead), &firn.PrefetchOptions{Count: 1000, MaxCount: 1000, OnDemand: true})
	b.Run("n=1000", func(b *testing.B) { threads(b, func() loop { return next(p) }) })
}

// BenchmarkPeers measures other libraries beside Next.
func BenchmarkPeers(b *testing.B) {
	// bwmarrin's widths are variables of the package, which a node copies.
	node, step := bwmarrin.NodeBits, bwmarrin.StepBits
	bwmarrin.NodeBits, bwmarrin.StepBits = 0, 22
	snow := must(bwmarrin.NewNode(0))
	bwmarrin.NodeBits, bwmarrin.StepBits = node, step
	must(bwmarrin.NewNode(1)) // computes what depends on the widths
	for _, p := range []struct {
		name string
		make func()
	}{
		{"bwmarrin-wide", func() { snow.Generate() }},
		{"google-uuidv7", func() { must(google.NewV7()) }},
		{"gofrs-uuidv7", func() { must(gofrs.NewV7()) }},
		{"ulid", func() { ulid.Make() }},
		{"xid", func() { xid.New() }},
	} {
		b.Run(p.name, func(b *testing.B) { pair(b, each(p.make), next(generator(wide, farAhead)), "x-firn", slice) })
	}
}

// BenchmarkBurst measures 100,000 IDs from idle, one by one: as soon as a
// format with 4096 in a millisecond allows, with a MaxAhead of 100 ms.
func BenchmarkBurst(b *testing.B) {
	const ids = 100_000
	snow := must(bwmarrin.NewNode(1))
	burst := func(l loop) float64 {
		time.Sleep(40 * time.Millisecond) // the format catches up
		return float64(l(ids))
	}
	ours := next(generator(usual, 100*time.Millisecond))
	theirs := each(func() { snow.Generate() })
	var own, ratios []float64
	for range b.N {
		x := burst(ours)
		own, ratios = append(own, x/1e6), append(ratios, burst(theirs)/x)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(own), "ms/burst")
	b.ReportMetric(median(ratios), "x-bwmarrin")
}

// BenchmarkSustained measures the rate in the long run, as a part of the 4096
// IDs in a millisecond that the format allows, and the processor time for it.
func BenchmarkSustained(b *testing.B) {
	snow := must(bwmarrin.NewNode(1))
	for name, l := range map[string]loop{
		"firn":     next(generator(usual, 10*time.Millisecond)),
		"bwmarrin": each(func() { snow.Generate() }),
	} {
		b.Run(name, func(b *testing.B) {
			l(100_000) // beyond what it may take in advance
			before := processorTime()
			b.ResetTimer()
			took := l(b.N)
			b.ReportMetric(100*float64(b.N)/(took.Seconds()*4096e3), "%-of-cap")
			b.ReportMetric(100*float64(processorTime()-before)/float64(took), "%-core")
		})
	}
}

// processorTime returns the processor time of this process so far.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkText measures formatting and parsing a 63-bit ID.
func BenchmarkText(b *testing.B) {
	const id = firn.ID(0x62f3f95a00430001)
	for _, f := range []firn.Format{firn.Base32, firn.Base62} {
		buf := make([]byte, 0, 64)
		text := string(f.Append(nil, id))
		b.Run("append/"+f.String(), func(b *testing.B) {
			pair(b, timed(func(n int) {
				for i := range n {
					buf = f.Append(buf[:0], id+firn.ID(i))
				}
			}), add(), "x-add", slice)
		})
		b.Run("parse/"+f.String(), func(b *testing.B) {
			pair(b, timed(func(n int) {
				var x firn.ID
				for range n {
					x ^= must(f.Parse(text))
				}
				sink.Store(uint64(x))
			}), add(), "x-add", slice)
		})
	}
}
