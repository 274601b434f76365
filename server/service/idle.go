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

// DefaultMaxIdle is ClusterConfig.MaxIdle if that is 0: longer than most pauses
// of a client, as it costs some writes of the store to open a sequencer again.
const DefaultMaxIdle = time.Hour

// fewIdle is how long a sequencer must be unused to make room for one that is
// to be created.
const fewIdle = time.Minute

// watchIdle begins to look for sequencers that are idle. Its caller holds c.mu.
func (c *Cluster) watchIdle() {
	if c.idling != nil {
		return
	}
	every := min(c.c.MaxIdle/4, fewIdle/2)
	c.idling = time.AfterFunc(every, func() {
		c.sample()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed {
			return
		}
		for _, i := range c.idle() {
			if time.Since(i.o.used) >= c.c.MaxIdle {
				c.retireLocked(i.name, i.o)
			}
		}
		c.idling.Reset(every)
	})
}

// sample notes which sequencers have made IDs since it was called last.
func (c *Cluster) sample() {
	all, _ := c.opened()
	made := make(map[*opening]uint64, len(all))
	for _, o := range all { // not under the lock: statistics ask the clock
		made[o] = o.stats().IDs
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for o, n := range made {
		if n != o.made {
			o.made, o.used = n, now
		}
	}
}

// An idler is a sequencer that is open, and that no call waits for.
type idler struct {
	name string
	o    *opening
}

// idle are those, the one that was not used for longest first. Its caller holds
// c.mu.
func (c *Cluster) idle() (all []idler) {
	for name, o := range c.byName {
		select {
		case <-o.ready:
			if o.users == 0 {
				all = append(all, idler{name, o})
			}
		default:
		}
	}
	slices.SortFunc(all, func(a, b idler) int { return cmp.Or(a.o.used.Compare(b.o.used), cmp.Compare(a.name, b.name)) })
	return all
}

// makeRoom waits until the sequencer of a name is closed if it is being closed,
// and makes room for it if there is none. A sequencer that exists always finds
// room: otherwise, a client that uses many could keep all others out.
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
		return fmt.Errorf("%w: this server has %d sequencers open, all in use, and %s would be one more", ErrTooManyNames, c.c.MaxNames, name)
	case err != nil:
		return storeError(ctx, err)
	}
	c.evict(0)
	return nil // if there still is no room, enter says so
}

// evict closes some sequencers that were not used for so long, a few at a time
// as looking for them costs as much as there are, and reports whether there is
// room.
func (c *Cluster) evict(unused time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.idle()
	for _, i := range all[:min(len(all), 1+c.c.MaxNames/64)] {
		if time.Since(i.o.used) < unused {
			break
		}
		c.retireLocked(i.name, i.o)
	}
	return len(c.byName) < c.c.MaxNames
}
