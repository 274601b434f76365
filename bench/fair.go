//go:build unix

package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

// fair measures how long a client that takes single IDs waits for one, alone
// and beside a client that takes all IDs that the layout of their sequencer
// allows.
func (r *run) fair(program string) {
	if !r.wants("fair/alone/p99") && !r.wants("fair/beside-greedy/p99") {
		return
	}
	const batch, pipeline = 100_000, 4
	r.withFirn(program, func(s *firnServer) {
		small := must(respConn(r.ctx, s.address, respCommand("NEXT", "bench"), 1, 0))
		defer small.Close()
		times := func(d time.Duration) (p99 float64) {
			var all []float64
			for begin := time.Now(); time.Since(begin) < d; {
				before := time.Now()
				_, err := small.call()
				failed(err)
				all = append(all, float64(time.Since(before))/1e6)
				sleep(r.ctx, time.Millisecond)
			}
			slices.Sort(all)
			return quantile(all, 0.99)
		}
		times(200 * time.Millisecond)
		greedy := must(respConn(r.ctx, s.address, respCommand("NEXTB", "bench", strconv.Itoa(batch)), pipeline, batch))
		defer greedy.Close()
		var alone, beside, rate []float64
		for range 5 {
			alone = append(alone, times(500*time.Millisecond))
			done := make(chan error, 1)
			var l load
			ctx, stop := context.WithCancel(r.ctx)
			go func() {
				var err error
				begin := time.Now()
				for ctx.Err() == nil && err == nil {
					var n int
					n, err = greedy.call()
					l.ids += n
				}
				l.took = time.Since(begin)
				done <- err
			}()
			sleep(r.ctx, 1500*time.Millisecond) // it is as far ahead as allowed
			p99 := times(time.Second)
			stop()
			failed(errors.Join(<-done))
			beside = append(beside, p99)
			rate = append(rate, float64(l.ids)/l.took.Seconds()/1e6)
			sleep(r.ctx, 1500*time.Millisecond)
		}
		r.add("fair/alone/p99", spreadOf(alone), "ms", Figure{Note: "one ID over RESP, a thousand times a second at most"})
		r.add("fair/beside-greedy/p99", spreadOf(beside), "ms", Figure{Note: "beside a client that takes batches of 100,000, four in a pipeline"})
		r.add("fair/greedy", spreadOf(rate), "M/s", Figure{Bound: "4.1 M/s, 2^12/ms", Note: "its first second runs ahead of the clock"})
	}, "--layout", "default")
}
