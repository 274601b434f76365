// Package load puts load on servers with package client, measures the latency
// of requests, and counts duplicate IDs. It is the implementation of firn
// bench. To take IDs in a program, use package client.
package load

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
)

// Options describe a load.
type Options struct {
	// Client configures the clients, except for Patience and Timeout: each
	// connection has its own client, with one request at a time.
	Client      client.Config
	Sequencer   string
	Connections int
	Count       int // IDs per request
	Duration    time.Duration
}

// A Result is the result of a load.
type Result struct {
	Took       time.Duration
	Requests   uint64
	IDs        uint64
	Duplicates uint64 // IDs that had already occurred
	Failures   uint64
	Failure    error // the last failure

	times []time.Duration // of requests, sorted
}

// Quantile returns the duration that this percentage of the requests did not
// exceed.
func (r *Result) Quantile(percent float64) time.Duration {
	n := len(r.times)
	return r.times[min(int(float64(n)*percent/100), n-1)].Round(time.Microsecond)
}

// JSON returns the result of a load for JSON.
func (r *Result) JSON(o *Options) any {
	v := map[string]any{
		"connections": o.Connections, "count": o.Count, "seconds": r.Took.Seconds(), "requests": r.Requests,
		"ids": r.IDs, "ids_per_second": float64(r.IDs) / r.Took.Seconds(),
		"failures": r.Failures, "duplicates": r.Duplicates,
		"latency_us": map[string]int64{
			"p50": r.Quantile(50).Microseconds(), "p90": r.Quantile(90).Microseconds(),
			"p99": r.Quantile(99).Microseconds(), "p999": r.Quantile(99.9).Microseconds(),
			"max": r.Quantile(100).Microseconds(),
		},
	}
	if r.Failure != nil {
		v["last_failure"] = r.Failure.Error()
	}
	return v
}

// Run puts load on the servers. It keeps all IDs in memory until the end, which
// takes 32 bytes per request or more. It calls watch every second with the
// counts since the last call; nil is allowed. It returns an error if no IDs
// arrived, or if the configuration of the clients is invalid.
func Run(ctx context.Context, o Options, watch func(ids, requests uint64)) (Result, error) {
	loaders := make([]*loader, o.Connections)
	var requests, ids atomic.Uint64
	var all sync.WaitGroup
	// Connecting is not part of the measurement.
	for i := range loaders {
		l, err := newLoader(o)
		if err != nil {
			return Result{}, err
		}
		loaders[i] = l
		defer l.client.Close(context.WithoutCancel(ctx))
		all.Go(func() { l.request(ctx) })
	}
	all.Wait()
	begin := time.Now()
	for _, l := range loaders {
		all.Go(func() { l.load(ctx, begin.Add(o.Duration), &requests, &ids) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	watchUntil(done, &requests, &ids, watch)

	r := Result{Took: time.Since(begin), Requests: requests.Load(), IDs: ids.Load()}
	var intervals []interval
	for _, l := range loaders {
		r.times = append(r.times, l.times...)
		intervals = append(intervals, l.intervals...)
		r.Failures += l.failed
		r.Failure = cmp.Or(l.err, r.Failure)
		l.intervals = nil
	}
	if r.Requests == 0 {
		r.Failure = cmp.Or(r.Failure, context.Cause(ctx)) // the load was interrupted
		return r, r.Failure
	}
	slices.Sort(r.times)
	r.Duplicates = countDuplicates(intervals)
	return r, nil
}

// watchUntil calls watch every second until done is closed.
func watchUntil(done <-chan struct{}, requests, ids *atomic.Uint64, watch func(ids, requests uint64)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before, beforeRequests uint64
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			i, r := ids.Load(), requests.Load()
			if watch != nil {
				watch(i-before, r-beforeRequests)
			}
			before, beforeRequests = i, r
		}
	}
}

// An interval is a range of consecutive IDs with the same upper half.
type interval struct{ hi, first, last uint64 }

// A loader is the work of one connection.
type loader struct {
	client *client.Client
	// take appends packed IDs of 64 and of 128 bits.
	take      [2]func(ctx context.Context, b []byte) ([]byte, error)
	wide      int // 1: the IDs have 128 bits
	packed    []byte
	intervals []interval
	times     []time.Duration // of requests
	failed    uint64
	err       error // the last failure
}

// requestTimeout is how long a request may take, including connecting.
const requestTimeout = 10 * time.Second

func newLoader(o Options) (*loader, error) {
	o.Client.Timeout, o.Client.Patience = requestTimeout, -1 // a failure is counted, not retried
	c, err := client.New(o.Client)
	if err != nil {
		return nil, err
	}
	return &loader{
		client: c,
		take: [...]func(context.Context, []byte) ([]byte, error){
			packedOf(c.Sequencer(o.Sequencer), o.Count), packedOf(c.Sequencer128(o.Sequencer), o.Count),
		},
	}, nil
}

// packedOf returns a function that takes count IDs and appends their bytes.
func packedOf[I firn.AnyID](s *client.SequencerOf[I], count int) func(ctx context.Context, b []byte) ([]byte, error) {
	return func(ctx context.Context, b []byte) ([]byte, error) {
		batch, err := s.NextBatch(ctx, count)
		if err != nil {
			return b, err
		}
		return batch.AppendRaw(b, 0, batch.Len()), nil
	}
}

// load makes requests until end, and at least one.
func (l *loader) load(ctx context.Context, end time.Time, requests, ids *atomic.Uint64) {
	for more := true; more && ctx.Err() == nil; more = time.Now().Before(end) {
		begin := time.Now()
		n := l.request(ctx)
		if n == 0 {
			continue
		}
		l.times = append(l.times, time.Since(begin))
		requests.Add(1)
		ids.Add(n)
	}
}

// request makes one request, and records the IDs. Without an answer it counts a
// failure, waits a little and returns 0.
func (l *loader) request(ctx context.Context) (ids uint64) {
	var err error
	l.packed, err = l.take[l.wide](ctx, l.packed[:0])
	if _, refused := errors.AsType[*client.Error](err); err != nil && !refused && len(l.intervals) == 0 && l.wide == 0 {
		if l.packed, err = l.take[1](ctx, l.packed[:0]); err == nil {
			l.wide = 1
		}
	}
	if err == nil {
		return l.note(8 << l.wide)
	}
	if ctx.Err() == nil { // an interrupted request is not a failure
		l.fail(ctx, err)
	}
	return 0
}

// fail counts a failure, and waits a little.
func (l *loader) fail(ctx context.Context, err error) {
	l.failed++
	l.err = err
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// note records the packed IDs, of size bytes each.
func (l *loader) note(size int) (n uint64) {
	for packed := l.packed; len(packed) > 0; packed = packed[size:] {
		var hi uint64
		if size == 16 {
			hi = binary.BigEndian.Uint64(packed)
		}
		lo := binary.BigEndian.Uint64(packed[size-8:])
		if last := len(l.intervals) - 1; n > 0 && l.intervals[last].hi == hi && l.intervals[last].last+1 == lo && lo != 0 {
			l.intervals[last].last = lo
		} else {
			l.intervals = append(l.intervals, interval{hi, lo, lo})
		}
		n++
	}
	return n
}

// countDuplicates counts IDs that had already occurred.
func countDuplicates(intervals []interval) (n uint64) {
	slices.SortFunc(intervals, func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.first, b.first))
	})
	for i := 1; i < len(intervals); i++ {
		before, s := intervals[i-1], &intervals[i]
		if s.hi != before.hi || s.first > before.last {
			continue
		}
		n += min(s.last, before.last) - s.first + 1
		s.last = max(s.last, before.last)
	}
	return n
}
