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
	mu      sync.Mutex // guards the fields below
	primary *server
	down    bool          // the standby does not follow
	changed chan struct{} // closed when a wait may end
	closed  bool
}

// A server is a log of applied writes, in order. The standby has the first
// durable of its entries.
type server struct {
	log      []entry
	values   map[string][]byte // from the whole log; a value is never changed
	durable  int
	replaced bool // by a failover: nothing becomes durable here any more
}

func newServer(log []entry) *server {
	s := &server{log: slices.Clone(log), values: make(map[string][]byte), durable: len(log)}
	for _, e := range log {
		s.values[e.key] = e.value
	}
	return s
}

type entry struct {
	key   string
	value []byte
}

var (
	_ grant.Store       = (*Store)(nil)
	_ grant.MultiGetter = (*Store)(nil)
	_ grant.Lineage     = (*Store)(nil)
)

// errWait is the error of a CAS that is applied on the primary alone, as far as
// is known.
var errWait = errors.New("storetest: applied at the primary, and perhaps not at the standby")

// init makes the first server. The caller holds r.mu.
func (r *Store) init() {
	if r.primary == nil {
		r.primary = newServer(nil)
		r.changed = make(chan struct{})
	}
}

// wake makes all waits check again. The caller holds r.mu.
func (r *Store) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// StopStandby makes the standby stop following the primary: from now on every
// CAS waits.
func (r *Store) StopStandby() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.init()
	r.down = true
}

// StartStandby makes the standby follow again. It catches up with the primary,
// and waits end with true.
func (r *Store) StartStandby() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.init()
	r.down = false
	r.primary.durable = len(r.primary.log)
	r.wake()
}

// Failover makes the standby the primary: what it lacks is lost, and waits end
// with an unknown result. The new primary has a standby of its own.
func (r *Store) Failover() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.init()
	r.primary.replaced = true
	r.primary = newServer(r.primary.log[:r.primary.durable])
	r.down = false
	r.wake()
}

// enter rejects invalid calls. It returns the primary, and r locked.
func (r *Store) enter(ctx context.Context, keys ...string) (*server, error) {
	if err := grant.CheckKey(keys...); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", grant.ErrNotSent, err)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, fmt.Errorf("%w: replicated: the store is closed", grant.ErrNotSent)
	}
	r.init()
	return r.primary, nil
}

// Get returns the value of a key on the primary. It may be lost.
func (r *Store) Get(ctx context.Context, key string) ([]byte, error) {
	values, err := r.GetMany(ctx, []string{key})
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// GetMany returns the values of all keys, as Get does.
func (r *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	at, err := r.enter(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = bytes.Clone(at.values[key])
	}
	return values, nil
}

// CAS replaces old by next, and waits for the standby.
func (r *Store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	at, err := r.enter(ctx, key)
	if err != nil {
		return false, err
	}
	if !bytes.Equal(at.values[key], old) {
		r.mu.Unlock()
		return false, nil
	}
	at.values[key] = bytes.Clone(next)
	at.log = append(at.log, entry{key, at.values[key]})
	here := len(at.log)
	if !r.down && !at.replaced {
		at.durable = here
	}
	for at.durable < here {
		over, changed := at.replaced || r.closed, r.changed
		r.mu.Unlock()
		if over {
			return false, errWait
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("%w: %w", errWait, ctx.Err())
		case <-changed:
		}
		r.mu.Lock()
	}
	r.mu.Unlock()
	return true, nil
}

// List calls yield for every key with the prefix. The values may be lost.
func (r *Store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	at, err := r.enter(ctx)
	if err != nil {
		return err
	}
	found := maps.Clone(at.values)
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
	at, err := r.enter(ctx)
	if err != nil {
		return "", 0, err
	}
	defer r.mu.Unlock()
	return "replicated", int64(len(at.log)), nil
}

// Close closes the store and ends all waits.
func (r *Store) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.init()
	r.closed = true
	r.wake()
	return nil
}
