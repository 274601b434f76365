package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn/grant"
)

// maxIdle is how long an unused sequencer stays open. It is longer than most
// pauses of a client, because reopening a sequencer costs some writes to the
// store.
const maxIdle = time.Hour

// fewIdle is how long a sequencer must be unused to make room for a new one.
const fewIdle = time.Minute

// watchIdle starts looking for idle sequencers. The caller holds c.mu.
func (c *Cluster) watchIdle() {
	if c.idling != nil {
		return
	}
	const every = fewIdle / 2
	c.idling = time.AfterFunc(every, func() {
		c.sample()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed {
			return
		}
		for _, i := range c.idle() {
			if time.Since(i.e.used) >= maxIdle {
				c.retireLocked(i.name, i.e)
			}
		}
		c.idling.Reset(every)
	})
}

// sample records which sequencers have made IDs since the last sample.
func (c *Cluster) sample() {
	all, _ := c.opened()
	made := make(map[*entry]uint64, len(all))
	for _, e := range all { // not under the lock: statistics read the clock
		made[e] = e.stats().IDs
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for e, n := range made {
		if n != e.made {
			e.made, e.used = n, now
		}
	}
}

// An idler is an open sequencer that no call waits for.
type idler struct {
	name string
	e    *entry
}

// idle returns the idle sequencers, the least recently used first. The caller
// holds c.mu.
func (c *Cluster) idle() (all []idler) {
	for name, e := range c.byName {
		if e.users == 0 && e.isOpen() {
			all = append(all, idler{name, e})
		}
	}
	slices.SortFunc(all, func(a, b idler) int { return cmp.Or(a.e.used.Compare(b.e.used), cmp.Compare(a.name, b.name)) })
	return all
}

// makeRoom waits until the sequencer of a name is closed if it is closing, and
// makes room for it if the server is full. A sequencer that exists always finds
// room: otherwise one client with many names could keep all others out.
func (c *Cluster) makeRoom(ctx context.Context, name string) error {
	c.mu.RLock()
	closes, known, full := c.closes[name], c.byName[name] != nil, len(c.byName) >= c.c.MaxNames
	c.mu.RUnlock()
	if closes != nil {
		select {
		case <-closes:
		case <-ctx.Done():
			return storeError(ctx, ctx.Err())
		}
	}
	if known || !full {
		return nil
	}
	c.sample()
	if c.evict(fewIdle) {
		return nil
	}
	err := c.patience.during(ctx, need{}, func(ctx context.Context) error {
		_, err := grant.Lookup(ctx, c.store, name)
		return err
	})
	switch {
	case errors.Is(err, grant.ErrNotFound):
		return fmt.Errorf("%w: this server has %d sequencers open, all in use, and no room for %s", ErrTooManyNames, c.c.MaxNames, name)
	case err != nil:
		return storeError(ctx, err)
	}
	c.evict(0)
	return nil // if there is still no room, enter returns the error
}

// evict closes a few sequencers that have been unused for so long, and reports
// whether there is room. It closes several at a time because each search looks
// at all of them.
func (c *Cluster) evict(unused time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.idle()
	for _, i := range all[:min(len(all), 1+c.c.MaxNames/64)] {
		if time.Since(i.e.used) < unused {
			break
		}
		c.retireLocked(i.name, i.e)
	}
	return len(c.byName) < c.c.MaxNames
}
