// Package replicated is a store for testing code that uses stores: in a
// failover, it loses values that only a read has shown.
package replicated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/firnid/firn/grant"
)

// A Store is a grant.Store in memory whose reads return values that may be
// lost, like those of a database with a synchronous standby. A conclusion that
// relies on a read alone fails with it.
//
// A CAS is visible on the primary at once. It returns true when the standby has
// it too. While the standby is down, the CAS waits until its context ends, and
// its result is unknown: the value stays visible, and Failover loses it.
//
// The zero Store is empty, has its standby, and is ready to use. It is
// safe for concurrent use by multiple goroutines and must not be copied.
type Store struct {
	mu       sync.Mutex // guards the fields below
	primary  data
	standby  data          // while it does not follow
	down     bool          // the standby does not follow
	promoted int           // how often the standby was
	changed  chan struct{} // closed when a wait may end; nil while no call waits
	closed   bool
}

// A data is what a server has: values, which are never changed, and the number
// of writes.
type data struct {
	values map[string][]byte
	writes int64
}

var (
	_ grant.Store       = (*Store)(nil)
	_ grant.MultiGetter = (*Store)(nil)
	_ grant.Lineage     = (*Store)(nil)
)

// errWait is the error of a CAS that is applied on the primary alone, as far as
// is known.
var errWait = errors.New("replicated: applied at the primary, and perhaps not at the standby")

// wake makes all waits check again. The caller holds r.mu.
func (r *Store) wake() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// StopStandby makes the standby stop following the primary: from now on every
// CAS waits.
func (r *Store) StopStandby() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.down {
		r.down, r.standby = true, data{maps.Clone(r.primary.values), r.primary.writes}
	}
}

// Failover makes the standby the primary: what it lacks is lost, and waits end
// with an unknown result. The new primary has a standby of its own.
func (r *Store) Failover() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		r.primary, r.down = r.standby, false
	}
	r.promoted++
	r.wake()
}

// enter rejects invalid calls. It returns with r locked.
func (r *Store) enter(ctx context.Context, keys ...string) error {
	if err := grant.CheckKey(keys...); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return grant.NotSent(err)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return fmt.Errorf("%w: replicated: the store is closed", grant.ErrNotSent)
	}
	return nil
}

// Get returns the value of a key on the primary. It may be lost.
func (r *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := r.enter(ctx, key); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	return bytes.Clone(r.primary.values[key]), nil
}

// GetMany returns the values of all keys, as Get does.
func (r *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	if err := r.enter(ctx, keys...); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = bytes.Clone(r.primary.values[key])
	}
	return values, nil
}

// CAS replaces old by next, and waits for the standby.
func (r *Store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	if err := r.enter(ctx, key); err != nil {
		return false, err
	}
	defer r.mu.Unlock()
	if !bytes.Equal(r.primary.values[key], old) {
		return false, nil
	}
	if r.primary.values == nil {
		r.primary.values = make(map[string][]byte)
	}
	r.primary.values[key] = bytes.Clone(next)
	r.primary.writes++
	for promoted := r.promoted; r.down && !r.closed && r.promoted == promoted; {
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
		r.mu.Lock()
		if ctx.Err() != nil || r.closed || r.promoted != promoted {
			return false, errors.Join(errWait, ctx.Err())
		}
	}
	return true, nil
}

// List calls yield for every key with the prefix. The values may be lost.
func (r *Store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	if err := r.enter(ctx); err != nil {
		return err
	}
	found := maps.Clone(r.primary.values)
	r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.HasPrefix(key, prefix) && !yield(key, bytes.Clone(found[key])) {
			break
		}
	}
	return nil
}

// Lineage counts what the primary has applied: a Failover can make it smaller.
func (r *Store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	if err := r.enter(ctx); err != nil {
		return "", 0, err
	}
	defer r.mu.Unlock()
	return "replicated", r.primary.writes, nil
}

// Close closes the store and ends all waits.
func (r *Store) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake()
	return nil
}
