package service

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A counted Backend counts the questions whether it is ready; an answer takes a
// while.
type counted struct {
	Backend
	asked, at atomic.Int64
	err       atomic.Pointer[error]
}

func (c *counted) Ready(ctx context.Context) error {
	c.asked.Add(1)
	if c.at.Add(1) > 1 {
		return errors.New("asked twice at a time")
	}
	defer c.at.Add(-1)
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done(): // as a store ends a call
		return ctx.Err()
	}
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

// TestReadiness: many callers at once, of which some give up, cost the Backend
// one question, and so does a caller right after them. A moment later the answer
// is a new one.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(counted)
		r := NewReadiness(b)
		wrong := errors.New("wrong")
		ask := func(patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err, want := r.Ready(ctx), b.err.Load(); ctx.Err() == nil && (err == nil) != (want == nil) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		for _, err := range []*error{nil, &wrong, nil} {
			b.err.Store(err)
			b.asked.Store(0)
			var all sync.WaitGroup
			for i := range 100 { // the first, whose question it is, leaves
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond / 2)
					ask([]time.Duration{time.Millisecond, time.Second}[i%2])
				})
			}
			all.Wait()
			if n := b.asked.Load(); n != 1 {
				t.Errorf("100 at once: %d questions, want 1", n)
			}
			ask(time.Second)
			if n := b.asked.Load(); n != 1 {
				t.Errorf("right after them: %d questions, want 1", n)
			}
			time.Sleep(readyFor)
		}
	})
}
