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

// minUnused is how long a sequencer must be unused to make room for a new one.
const minUnused = time.Minute

// A lastUse is an open sequencer, and when it made its last ID.
type lastUse struct {
	entry *entry
	used  time.Time
}

// byLastUse returns the open sequencers, the least recently used first. One
// that has no node ID has not been used since its window ended, or never.
func (b *StoreBackend) byLastUse() (all []lastUse) {
	now := time.Now()
	for _, e := range b.opened() { // not under the lock: statistics read the clock
		i := lastUse{e, e.since}
		s := e.Stats()
		if used := now.Add(min(s.Lead, 0)); e.Status().Phase == grant.Holding && used.After(i.used) {
			i.used = used
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b lastUse) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.entry.name, b.entry.name))
	})
	return all
}

// makeRoom makes room for the sequencer of a name if the server is full. A
// sequencer that exists always finds room: otherwise one client with many names
// could keep all others out.
func (b *StoreBackend) makeRoom(ctx context.Context, name string) error {
	b.mu.RLock()
	e := b.byName[name] // one that is closing leaves its place to the name it was closed for
	fits := e != nil && e.phase != phaseClosing || !b.full()
	b.mu.RUnlock()
	if fits {
		return nil
	}
	if b.evict(minUnused) {
		return nil
	}
	_, err := b.Lookup(ctx, name)
	switch {
	case errors.Is(err, grant.ErrNotFound):
		return fmt.Errorf("%w: this server has %d sequencers open, all in use, and no room for %s", ErrTooManyNames,
			b.config.MaxSequencers, name)
	case err != nil:
		return err
	}
	b.evict(0)
	return nil // if there is still no room, enter returns the error
}

// evict closes a few sequencers that have been unused for so long, and reports
// whether there is room. It closes several at a time because each search looks
// at all of them.
func (b *StoreBackend) evict(unused time.Duration) bool {
	all := b.byLastUse()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range all[:min(len(all), 1+b.config.MaxSequencers/64)] {
		if time.Since(i.used) < unused {
			break
		}
		b.startClosing(i.entry)
	}
	return !b.full()
}

// retire closes an open sequencer that is no longer useful.
func (b *StoreBackend) retire(e *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.startClosing(e)
}

// startClosing closes an open sequencer in the background. The caller holds mu.
// Until the sequencer is closed no call opens it again: its node ID may be the
// only one that this server may take.
func (b *StoreBackend) startClosing(e *entry) {
	if e.phase != phaseOpen || b.closed {
		return
	}
	e.phase, e.changed = phaseClosing, make(chan struct{})
	b.closing++
	b.retiring.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lateCloseTimeout)
		defer cancel()
		_ = e.Close(ctx) // a node ID that is not given back is free when its window ends
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.byName, e.name)
		b.closing--
		close(e.changed)
	})
}
