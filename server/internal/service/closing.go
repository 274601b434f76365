package service

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Node IDs are given back closingAtOnce at a time: if all were given back at
// once, each would wait until its timeout. If the store accepts none for
// closingStalls, no more are tried.
const (
	closingAtOnce = 64
	closingStalls = 5 * time.Second
)

// lateClose is how long a sequencer that was opened during shutdown may take to
// give its node ID back.
const lateClose = 2 * time.Second

// Close gives all node IDs back concurrently. An error says how many could not
// be given back before the context was done; these are free when their windows
// end.
func (c *StoreBackend) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	var open []*entry
	for _, e := range c.byName {
		if e.phase == phaseOpen {
			open = append(open, e)
		}
	}
	c.mu.Unlock()
	c.silence.close()
	c.stopCounting()
	// Each opening closes what it opened. Cancelling one may leave its node ID
	// claimed, so it is cancelled only when ctx ends.
	stop := context.AfterFunc(ctx, c.stopOpening)
	c.openings.Wait()
	stop()
	c.stopOpening()
	failed, first := giveBack(ctx, open)
	c.retiring.Wait()
	if failed > 0 {
		return fmt.Errorf("%d of %d node IDs were not given back: %w", failed, len(open), first)
	}
	return nil
}

// giveBack closes sequencers until ctx is done. It returns how many of their
// node IDs were not given back, and the first error.
func giveBack(ctx context.Context, open []*entry) (failed int, first error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stalled := time.AfterFunc(closingStalls, stop)
	defer stalled.Stop()
	var mu sync.Mutex // guards failed and first
	turns := make(chan struct{}, closingAtOnce)
	var closing sync.WaitGroup
	for _, e := range open {
		closing.Go(func() {
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
			case <-ctx.Done(): // stop using the store
			}
			err := e.Close(ctx)
			if err == nil {
				stalled.Reset(closingStalls)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if failed++; failed == 1 {
				first = err
			}
		})
	}
	closing.Wait()
	return failed, first
}
