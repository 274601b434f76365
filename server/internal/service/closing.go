package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// A Cluster closes a sequencer to make room for another one, or because it was
// created again with another layout: retire closes it in the background, and no
// call opens the name again before that is done. Close closes all that are open.

// fewIdle is how long a sequencer must be unused to make room for a new one.
const fewIdle = time.Minute

// An idler is an open sequencer, and when it made its last ID.
type idler struct {
	name  string
	entry *entry
	used  time.Time
}

// idle returns the open sequencers, the least recently used first. One that has
// no node ID has not been used since its window ended, or never.
func (c *Cluster) idle() (all []idler) {
	now := time.Now()
	for name, e := range c.opened() { // not under the lock: statistics read the clock
		i := idler{name, e, e.since}
		s := e.Stats()
		if used := now.Add(min(s.Lead, 0)); s.Status.Phase == grant.Holding && used.After(i.used) {
			i.used = used
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b idler) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	return all
}

// makeRoom makes room for the sequencer of a name if the server is full. A
// sequencer that exists always finds room: otherwise one client with many names
// could keep all others out.
func (c *Cluster) makeRoom(ctx context.Context, name string) error {
	c.mu.RLock()
	fits := c.byName[name] != nil || !c.full()
	c.mu.RUnlock()
	if fits {
		return nil
	}
	if c.evict(fewIdle) {
		return nil
	}
	_, err := c.Lookup(ctx, name)
	switch {
	case errors.Is(err, grant.ErrNotFound):
		return fmt.Errorf("%w: this server has %d sequencers open, all in use, and no room for %s", ErrTooManyNames, c.config.MaxNames, name)
	case err != nil:
		return err
	}
	c.evict(0)
	return nil // if there is still no room, enter returns the error
}

// evict closes a few sequencers that have been unused for so long, and reports
// whether there is room. It closes several at a time because each search looks
// at all of them.
func (c *Cluster) evict(unused time.Duration) bool {
	all := c.idle()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range all[:min(len(all), 1+c.config.MaxNames/64)] {
		if time.Since(i.used) < unused {
			break
		}
		c.retireLocked(i.name, i.entry)
	}
	return !c.full()
}

// retire closes an open sequencer that is no longer useful.
func (c *Cluster) retire(name string, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retireLocked(name, e)
}

// retireLocked is retire for a caller that holds c.mu. Until the sequencer is
// closed no call opens it again: its node ID may be the only one that this
// server may take.
func (c *Cluster) retireLocked(name string, e *entry) {
	if e.phase != phaseOpen || c.closed {
		return
	}
	e.phase, e.changed = phaseClosing, make(chan struct{})
	c.closing++
	c.retiring.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lateClose)
		defer cancel()
		_ = e.Close(ctx) // a node ID that is not given back is free when its window ends
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.byName, name)
		c.closing--
		close(e.changed)
	})
}

// lateClose is how long a sequencer that was opened during shutdown may take to
// give its node ID back.
const lateClose = 2 * time.Second

// Close gives all node IDs back concurrently. An error says how many could not
// be given back before the context was done; these are free when their windows
// end.
func (c *Cluster) Close(ctx context.Context) error {
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

// Node IDs are given back closingAtOnce at a time: if all were given back at
// once, each would wait until its timeout. If the store accepts none for
// closingStalls, no more are tried.
const (
	closingAtOnce = 64
	closingStalls = 5 * time.Second
)

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
