package main

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// threads measures the cost of a call when two threads make IDs at the same
// time.
func (r *run) threads() {
	all := []subject{
		atomicAdd(), casAdd(), mutexAdd(),
		firnNext("firn", wideLayout, farAhead),
		firnFill("firn-fill-64", wideLayout, farAhead, 64),
		firnPrefetch("firn-prefetch", 1000, false),
	}
	if c, ok := firnCursor("firn-cursor", wideLayout, farAhead); ok {
		all = append(all, c)
	} else if r.wants("threads/firn-cursor:alone") {
		r.skip("threads/firn-cursor", "this version of the library has no Cursor")
	}
	for _, make := range []func() subject{
		peerBwmarrinWide, peerInflux, peerWUID, peerSno, peerXID, peerULID, peerKSUID, peerGoogle, peerGofrs,
	} {
		all = append(all, make())
	}
	if runtime.GOMAXPROCS(0) < 2 {
		r.skip("threads", "this machine has one processor")
		return
	}
	for _, s := range all {
		name := "threads/" + s.name
		if !r.wants(name+"/1") && !r.wants(name+"/2") && !r.wants(name+":alone") {
			continue
		}
		both, err := contend(r.ctx, s)
		if err != nil {
			r.skip(name, err.Error())
			continue
		}
		two := spreadOf(both.b)
		r.add(name+"/1", spreadOf(both.a), "ns", Figure{Bound: s.bound})
		r.add(name+"/2", two, "ns", Figure{Note: number(2e3/max(two.median, 1e-9)) + " M/s in all"})
		r.add(name+":alone", spreadOf(ratios(both.b, both.a)), "x", Figure{})
	}
}

// A span is when a batch of IDs was made, since a common start.
type span struct{ begin, end time.Duration }

const (
	contendBatch  = 256 // IDs per batch
	contendRounds = 24
	contendTime   = 600 * time.Millisecond // no more rounds after this time, if there are fewRounds
	fewRounds     = 6
)

// contend returns, for each of several rounds, the median nanoseconds per ID
// with one thread (a) and with two at the same time (b). Each thread has a
// processor of its own if the system allows it.
func contend(ctx context.Context, s subject) (samples, error) {
	var out samples
	err := bounded(ctx, patience, func(ctx context.Context) {
		begin := time.Now()
		record := func(d time.Duration) (all []span) {
			for end := time.Since(begin) + d; time.Since(begin) < end; {
				for range 8 {
					from := time.Since(begin)
					s.run(contendBatch)
					all = append(all, span{from, time.Since(begin)})
				}
			}
			return all
		}
		type order struct {
			d  time.Duration
			to *[]span
			wg *sync.WaitGroup
		}
		var orders [2]chan order
		for cpu := range orders {
			c := make(chan order)
			orders[cpu] = c
			defer close(c)
			go func() {
				runtime.LockOSThread() // permanently, so that the pinned thread ends with the goroutine
				pin(cpu)
				for o := range c {
					*o.to = record(o.d)
					o.wg.Done()
				}
			}()
		}
		for round := range contendRounds {
			if ctx.Err() != nil || round >= fewRounds && time.Since(begin) > contendTime {
				return
			}
			var alone, x, y []span
			var wg sync.WaitGroup
			wg.Add(1)
			orders[round%2] <- order{2 * time.Millisecond, &alone, &wg}
			wg.Wait()
			wg.Add(2)
			orders[0] <- order{5 * time.Millisecond, &x, &wg}
			orders[1] <- order{5 * time.Millisecond, &y, &wg}
			wg.Wait()
			var one []float64
			for _, b := range alone {
				one = append(one, float64(b.end-b.begin)/contendBatch)
			}
			solo := spreadOf(one).median
			most := time.Duration(20 * solo * contendBatch)
			two := spreadOf(append(covered(x, y, most), covered(y, x, most)...))
			if two.n == 0 {
				continue // the machine did not provide two processors
			}
			out.a = append(out.a, solo)
			out.b = append(out.b, two.median)
		}
	})
	if err != nil {
		return samples{}, err
	}
	return out, nil
}

// covered returns the nanoseconds per ID of those batches of a during which the
// other thread was making IDs the whole time. A batch that took longer than
// most was interrupted by something else, and is omitted. Both are in order of
// time.
func covered(a, other []span, most time.Duration) (perID []float64) {
	const gap = 2 * time.Microsecond // between two batches of a thread that keeps running
	j := 0
	for _, b := range a {
		if b.end-b.begin > most {
			continue
		}
		for j < len(other) && other[j].end < b.begin {
			j++
		}
		at := b.begin
		for k := j; k < len(other) && at < b.end; k++ {
			if other[k].end-other[k].begin > most || other[k].begin-at > gap {
				break
			}
			at = other[k].end
		}
		if at >= b.end {
			perID = append(perID, float64(b.end-b.begin)/contendBatch)
		}
	}
	return perID
}
