package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// A subject is something that is measured: making n IDs, or n of anything else.
// Each has a loop of its own, so that all have the same overhead.
type subject struct {
	name string
	run  func(n int)

	// waits means that the subject waits or spins when its format has no more
	// IDs. Then elapsed time is measured instead of processor time.
	waits bool
	bound string        // what its format allows, for people
	cap   float64       // IDs per second that its format allows; 0: no effective limit
	rest  time.Duration // time until it is idle after a burst, if longer than usual
}

// The length of a slice, and the number of pairs of slices. Both are small, so
// that disturbances affect both slices of a pair.
const (
	sliceTime    = 150 * time.Microsecond
	slicePairs   = 240
	waitingSlice = 20 * time.Millisecond // several ticks of all formats
	waitingPairs = 12
	pairTime     = 250 * time.Millisecond // no more pairs after this time, if there are fewPairs
	fewPairs     = 24
	fewWaiting   = 6
	patience     = 8 * time.Second // a subject is abandoned after this time
)

// samples are nanoseconds per ID, from alternating slices of two subjects.
type samples struct {
	a, b []float64

	// busy means that the processor was taken away in some of these, because
	// too few others were available.
	busy bool
}

func (s samples) ratio() spread { return spreadOf(ratios(s.a, s.b)) }

// note returns a remark about the samples.
func (s samples) note() string {
	if s.busy {
		return "busy machine"
	}
	return ""
}

// A collector gathers pairs of samples. Those in which the processor was taken
// away count only if there are too few others.
type collector struct {
	quiet, disturbed samples
}

func (c *collector) add(a, b float64, quiet bool) {
	to := &c.disturbed
	if quiet {
		to = &c.quiet
	}
	to.a, to.b = append(to.a, a), append(to.b, b)
}

// of returns the quiet samples, or all if there are too few of these.
func (c *collector) of(few int) samples {
	if len(c.quiet.a) >= few {
		return c.quiet
	}
	return samples{slices.Concat(c.quiet.a, c.disturbed.a), slices.Concat(c.quiet.b, c.disturbed.b), len(c.disturbed.a) > 0}
}

// least is of for samples of time: if there are too few quiet ones, the
// smallest others are added. Disturbances only add time, so these are closest
// to the true value, and above it.
func (c *collector) least(few int) samples {
	s := samples{slices.Clone(c.quiet.a), slices.Clone(c.quiet.b), false}
	order := make([]int, len(c.disturbed.a))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Compare(c.disturbed.a[i]+c.disturbed.b[i], c.disturbed.a[j]+c.disturbed.b[j])
	})
	for _, i := range order {
		if len(s.a) >= few {
			break
		}
		s.a, s.b, s.busy = append(s.a, c.disturbed.a[i]), append(s.b, c.disturbed.b[i]), true
	}
	return s
}

// timed returns how long f takes, and whether this thread had a processor
// almost whenever it was ready to run. The goroutine must be locked to its
// thread.
func timed(f func()) (took time.Duration, quiet bool) {
	delay, begin := runDelay(), time.Now()
	f()
	took = time.Since(begin)
	return took, runDelay()-delay <= took/20
}

// pair measures a and b alternately.
func pair(ctx context.Context, a, b subject) (samples, error) {
	slice := func(s subject) time.Duration {
		if s.waits {
			return waitingSlice
		}
		return sliceTime
	}
	pairs, few := slicePairs, fewPairs
	if a.waits || b.waits {
		pairs, few = waitingPairs, fewWaiting
	}
	var out collector
	err := bounded(ctx, patience, func(ctx context.Context) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		na, nb := calibrate(a, slice(a)), calibrate(b, slice(b))
		begin := time.Now()
		for i := 0; len(out.quiet.a) < pairs; i++ {
			if ctx.Err() != nil || i >= few && time.Since(begin) > pairTime {
				return
			}
			xa, qa := perID(a, na)
			xb, qb := perID(b, nb)
			out.add(xa, xb, qa && qb)
		}
	})
	if err != nil {
		return samples{}, err // out may still be written to
	}
	return out.least(few), nil
}

// perID returns the cost of one of n IDs, in nanoseconds. For a subject that
// waits, that is elapsed time, and quiet reports whether nothing else took the
// processor. Otherwise it is processor time, and quiet is always true.
func perID(s subject, n int) (ns float64, quiet bool) {
	if s.waits {
		took, quiet := timed(func() { s.run(n) })
		return float64(took) / float64(n), quiet
	}
	begin := threadTime()
	s.run(n)
	return float64(threadTime()-begin) / float64(n), true
}

// calibrate returns how many IDs take about the time of a slice. It also warms
// up the subject. The fastest of three attempts counts: a disturbed one would
// make slices so short that reading the clock dominates.
func calibrate(s subject, slice time.Duration) int {
	tries := 3
	if s.waits {
		tries = 1
	}
	n := 1
	for {
		took := time.Duration(1<<63 - 1)
		for range tries {
			ns, _ := perID(s, n)
			took = min(took, time.Duration(ns*float64(n)))
		}
		if took >= slice/4 || n >= 1<<28 {
			return max(1, int(float64(n)*float64(slice)/float64(max(took, 1))))
		}
		n *= 2
	}
}

// bounded calls f in a goroutine, and abandons it after the given time: it then
// continues until it checks its context or the program ends. After an error, do
// not read what f writes. A panic is returned as an error.
func bounded(ctx context.Context, most time.Duration, f func(context.Context)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := errors.New("it ended its goroutine")
		defer func() { // also runs after runtime.Goexit
			if x := recover(); x != nil {
				err = errors.New(reason(x))
			}
			done <- err
		}()
		f(ctx)
		err = nil
	}()
	select {
	case err := <-done:
		if err == nil {
			err = ctx.Err()
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("it stalled: %w", ctx.Err())
	}
}

// allocs returns the number of allocations per ID.
func allocs(ctx context.Context, s subject, n int) (float64, error) {
	var per float64
	err := bounded(ctx, patience, func(context.Context) {
		s.run(min(n, 16))
		var all []float64
		for range 5 { // other parts of the program may allocate at the same time
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s.run(n)
			runtime.ReadMemStats(&after)
			all = append(all, float64((after.Mallocs-before.Mallocs)/uint64(n)))
		}
		per = spreadOf(all).median
	})
	if err != nil {
		return 0, err
	}
	return per, nil
}
