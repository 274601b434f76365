package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// library measures the cost for one goroutine, each subject alternating with an
// atomic add or with Firn.
func (r *run) library() {
	r.part("base", func() {
		base := atomicAdd()
		if s, err := pair(r.ctx, base, atomicAdd()); err != nil {
			r.skip("base/atomic-add", err.Error())
		} else {
			r.add("base/atomic-add", spreadOf(s.a), "ns", Figure{})
		}
		for _, b := range baselines() {
			r.against("base/", b, base, false)
		}
	})
	r.part("next", func() {
		base := atomicAdd()
		r.against("next/", firnNext("firn", wideLayout, farAhead), base, true)
		r.against("next/", firnNext("firn", wideLayout, farAhead), addCounter(), false)
		r.against("next/", firnTryNext("firn-trynext", wideLayout, farAhead), base, false)
		r.against("next128/", firnNext128("firn", "uuidv7", farAhead), base, true)
		if c, ok := firnCursor("firn-cursor", wideLayout, farAhead); ok {
			r.against("next/", c, base, true)
		} else if r.wants("next/firn-cursor") {
			r.skip("next/firn-cursor", "this version of the library has no Cursor")
		}
		capped := firnNext("firn-10.12", twitterShape, 0)
		capped.waits, capped.bound = true, cap12
		if s, err := pair(r.ctx, base, capped); err != nil {
			r.skip("next/firn-10.12", err.Error())
		} else {
			r.add("next/firn-10.12", spreadOf(s.b), "ns", Figure{Bound: capped.bound, Note: s.note()})
		}
		for _, size := range []int{64, 4096} {
			r.against("fill/", firnFill(fmt.Sprintf("firn-%d", size), wideLayout, farAhead, size), base, size == 4096)
		}
		r.against("batch/", firnBatch("firn-1000", wideLayout, farAhead, 1000), base, false)
		r.against("prefetch/", firnPrefetch("firn-1000", 1000, false), base, true)
		r.against("prefetch/", firnPrefetch("firn-1000-ahead", 1000, true), base, true)
	})
	r.part("peers", func() {
		firn := firnNext("firn", wideLayout, farAhead)
		for _, make := range peers() {
			p := make()
			if p.cap > 0 && p.cap < 1e5 && p.rest > 0 {
				continue // it would stall for seconds: see sustained
			}
			r.against("next/", p, firn, p.name == "google" || p.name == "ulid" || p.name == "bwmarrin-wide")
		}
	})
	r.part("layouts", func() {
		plain := firnNext("plain", wideLayout, farAhead)
		for _, layout := range []string{"default", "hazelcast", "snowcast", "flake-idgen", "lable", "lable,mode=spread", "twitter", "js53"} {
			s := firnNext(layout, layout, farAhead)
			s.bound = "" // it may run ahead without limit
			r.against("layout/", s, plain, false)
		}
		for _, layout := range []string{"boundary", "uuidv7", "ulid"} {
			r.against("layout/", firnNext128(layout, layout, farAhead), plain, false)
		}
		firn := firnNext128("firn", "uuidv7", farAhead)
		for _, p := range []subject{peerGoogle(), peerGoogleReader(), peerGofrs(), peerGofrsReader()} {
			r.against("uuidv7/", p, firn, false)
		}
		if p, ok := peerStd(); ok {
			r.against("uuidv7/", p, firn, false)
		}
	})
}

// against adds the cost of a and, measured alternately, its ratio to that of b:
// the figures PREFIX+A and PREFIX+A:B, and PREFIX+A/allocs if countAllocs is
// set. For a subject that waits only the time is added, because its ratio to
// one that does not means nothing. So it is for texts whose ratio has no
// target.
func (r *run) against(prefix string, a, b subject, countAllocs bool) {
	name := prefix + a.name
	ratio := name + ":" + b.name
	if !r.wants(name) && !r.wants(ratio) && !r.wants(name+"/allocs") {
		return
	}
	s, err := pair(r.ctx, a, b)
	if err != nil {
		r.skip(name, err.Error())
		return
	}
	if _, again := r.report.find(name); !again {
		r.add(name, spreadOf(s.a), "ns", Figure{Bound: a.bound, Note: s.note()})
	}
	_, aimed := aims()[ratio]
	if !a.waits && (aimed || prefix != "append/" && prefix != "parse/") {
		r.add(ratio, s.ratio(), "x", Figure{})
	}
	if countAllocs {
		if n, err := allocs(r.ctx, a, 10_000); err != nil {
			r.skip(name+"/allocs", err.Error())
		} else {
			r.add(name+"/allocs", one(n), "allocs", Figure{})
		}
	}
}

// bursts measures how long it takes to get many IDs from idle.
func (r *run) bursts() {
	ahead := 100 * time.Millisecond
	firn := func() subject { return firnNext("firn", twitterShape, ahead) }
	for _, n := range []int{1000, 10_000, 100_000} {
		size := fmt.Sprintf("burst-%s/", map[int]string{1000: "1k", 10_000: "10k", 100_000: "100k"}[n])
		all := []func() subject{
			func() subject { return firnFill("firn-fill", twitterShape, ahead, 4096) },
			peerBwmarrin, peerInflux, peerXID, peerGoogle,
		}
		rounds := 5
		switch n {
		case 1000:
			all = append(all, peerSonyflake2)
		case 100_000:
			rounds = 7
			all = append(all, peerGodruoyi, peerSonyflake2ms, peerSno)
		}
		// Yitter can run 2 s ahead, and then makes no IDs for 2 s. Only a burst
		// that fits can be measured in time; sustained measures the rest.
		if n == 100_000 {
			all = append(all, func() subject { return peerYitter("yitter", 6, capYitter) })
		}
		for i, make := range all {
			a, b := make(), firn()
			if !r.wants(size+a.name) && !r.wants(size+a.name+":"+b.name) && (i > 0 || !r.wants(size+b.name)) {
				continue
			}
			if a.rest > 0 {
				rounds = 2
			}
			s, err := r.burst(a, b, n, rounds)
			if err != nil {
				r.skip(size+a.name, err.Error())
				continue
			}
			if i == 0 {
				r.add(size+b.name, spreadOf(s.b), "ms", Figure{Bound: cap12, Note: strings.TrimSuffix("one by one, 100ms ahead; "+s.note(), "; ")})
			}
			if i == 0 && n == 100_000 {
				format := slices.Repeat([]float64{leastBurst(n)}, len(s.b))
				r.add(size+"format:firn", spreadOf(ratios(format, s.b)), "x", Figure{Note: "the least that 12 bits of sequence allow without running ahead, " + number(leastBurst(n)) + " ms"})
			}
			r.add(size+a.name, spreadOf(s.a), "ms", Figure{Bound: a.bound, Note: s.note()})
			r.add(size+a.name+":"+b.name, s.ratio(), "x", Figure{Note: s.note()})
		}
	}
}

// leastBurst returns the minimum number of milliseconds for n IDs if a
// millisecond has 4096 of them and none may come from the future: the first and
// the last ones may come from the very ends of a tick.
func leastBurst(n int) float64 { return float64(max(0, (n+4095)/4096-2)) }

// burst measures a and b alternately, in milliseconds for n IDs, each after a
// rest in which its format has caught up.
func (r *run) burst(a, b subject, n, rounds int) (samples, error) {
	const few = 3
	var out collector
	err := bounded(r.ctx, 30*time.Second, func(ctx context.Context) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		one := func(s subject) (ms float64, quiet bool) {
			sleep(ctx, max(40*time.Millisecond, s.rest))
			perOne, quiet := perID(s, n)
			return perOne * float64(n) / 1e6, quiet
		}
		begin := time.Now()
		for i := 0; len(out.quiet.a) < rounds; i++ {
			if ctx.Err() != nil || i >= min(few, rounds) && time.Since(begin) > 800*time.Millisecond {
				return
			}
			xa, qa := one(a)
			xb, qb := one(b)
			out.add(xa, xb, qa && qb)
		}
	})
	if err != nil {
		return samples{}, err
	}
	return out.least(few), nil
}

// sleep waits, or returns when ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// sustained measures how many IDs a subject makes in the long run, as a
// fraction of what the format allows, and how much of a processor that takes.
func (r *run) sustained() {
	firn := func(name string, ahead time.Duration) func() subject {
		return func() subject {
			s := firnNext(name, twitterShape, ahead)
			s.bound, s.cap = cap12, perSecond
			return s
		}
	}
	for _, make := range []func() subject{
		firn("firn", 10*time.Millisecond), firn("firn-no-ahead", 0),
		peerBwmarrin, peerGodruoyi, peerInflux, peerSonyflake2ms, peerSonyflake2, peerSno, peerXID,
		func() subject { return peerYitter("yitter", 6, capYitter) },
	} {
		s := make()
		name := "sustained/" + s.name
		if !r.wants(name+"/of-cap") && !r.wants(name+"/cpu") {
			continue
		}
		var out collector // a: IDs per second, b: percent of a processor
		var pause time.Duration
		slice, slices := 50*time.Millisecond, 10
		if s.name == "firn" {
			slices = 24
		}
		if s.rest > 0 {
			slice, slices = 2*s.rest, 1 // some of what it makes at once, and some of what it does not
		}
		few := min(3, slices)
		err := bounded(r.ctx, 30*time.Second, func(ctx context.Context) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			count := func(d time.Duration) (ids int) {
				const step = 64
				begin := time.Now()
				for last := begin; last.Sub(begin) < d; {
					s.run(step)
					ids += step
					now := time.Now()
					pause, last = max(pause, now.Sub(last)), now
				}
				return ids
			}
			count(150 * time.Millisecond) // beyond what it may take in advance
			pause = 0
			begin, wasQuiet := time.Now(), true
			for i := 0; len(out.quiet.a) < slices; i++ {
				if ctx.Err() != nil || i >= few && time.Since(begin) > 1500*time.Millisecond {
					return
				}
				before, ids := processTime(), 0
				took, quiet := timed(func() { ids = count(slice) })
				// After a disturbed sample, the rate exceeds the cap while the
				// subject catches up.
				out.add(float64(ids)/took.Seconds(), 100*float64(processTime()-before)/float64(took), quiet && wasQuiet)
				wasQuiet = quiet
			}
		})
		if err != nil {
			r.skip(name, err.Error())
			continue
		}
		both := out.of(few)
		rate, cpu := both.a, both.b
		for i := range rate {
			rate[i] *= 100 / s.cap
		}
		note := strings.TrimSuffix(fmt.Sprintf("longest 64 IDs %v; %s", pause.Round(10*time.Microsecond), both.note()), "; ")
		r.add(name+"/of-cap", spreadOf(rate), "%", Figure{Bound: s.bound, Note: note})
		r.add(name+"/cpu", spreadOf(cpu), "%", Figure{Note: both.note()})
	}
}
