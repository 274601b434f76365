package service

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Node IDs are given back maxParallelCloses at a time: if all were given back
// at once, each would wait until its timeout. If the store accepts none for
// closeStallTimeout, no more are tried.
const (
	maxParallelCloses = 64
	closeStallTimeout = 5 * time.Second
)

// lateCloseTimeout is how long a sequencer that was opened during shutdown may
// take to give its node ID back.
const lateCloseTimeout = 2 * time.Second

// Close gives all node IDs back concurrently. An error says how many could not
// be given back before the context was done; these are free when their windows
// end.
func (b *StoreBackend) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	var open []*entry
	for _, e := range b.byName {
		if e.phase == phaseOpen {
			open = append(open, e)
		}
	}
	b.mu.Unlock()
	b.silence.close()
	b.stopCounting()
	// Each opening closes what it opened. Cancelling one may leave its node ID
	// claimed, so it is cancelled only when ctx ends.
	stop := context.AfterFunc(ctx, b.stopOpening)
	b.background.Wait()
	stop()
	b.stopOpening()
	failed, first := giveBack(ctx, open)
	b.retiring.Wait()
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
	stalled := time.AfterFunc(closeStallTimeout, stop)
	defer stalled.Stop()
	var mu sync.Mutex // guards failed and first
	turns := make(chan struct{}, maxParallelCloses)
	var closing sync.WaitGroup
	for _, e := range open {
		closing.Go(func() {
			err := e.giveBack(ctx, turns)
			if err == nil {
				stalled.Reset(closeStallTimeout)
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

// giveBack closes the sequencer in its turn. When ctx ends, it stops using the
// store.
func (e *entry) giveBack(ctx context.Context, turns chan struct{}) error {
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
		stop := context.AfterFunc(ctx, e.Abandon) // Close would continue for a while
		err := e.Close(ctx)
		if !stop() && err == nil { // after Abandon, Close gives nothing back
			err = ctx.Err()
		}
		return err
	case <-ctx.Done():
		e.Abandon()
		return ctx.Err()
	}
}
