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
// it too. While the standby is down, the CAS waits until its context ends or
// the wait is canceled, and its result is unknown: the value stays visible, and
// Failover loses it. The Store itself is a client of the current primary;
// Old returns a client that still talks to the server that was replaced.
//
// The zero Store is empty, has its standby, and is ready to use. It is
// safe for concurrent use by multiple goroutines and must not be copied.
type Store struct {
	mu      sync.Mutex // guards the fields below
	primary *server
	old     *server
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
	gaveUp   int  // waits for entries up to here were cut short
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

// CancelWaits ends all waits for the standby, as an administrator can. The
// results are unknown.
func (r *Store) CancelWaits() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.init()
	r.primary.gaveUp = len(r.primary.log)
	r.wake()
}

// Failover makes the standby the primary: what it lacks is lost, and waits end
// with an unknown result. The new primary has a standby of its own. The server
// that was replaced keeps running on its own; see Old.
func (r *Store) Failover() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.init()
	r.old = r.primary
	r.old.replaced = true
	r.primary = newServer(r.old.log[:r.old.durable])
	r.down = false
	r.wake()
}

// Old returns a client of the server that the last Failover replaced, or nil
// before the first. That server is cut off: reads show what it had and what was
// written to it since, and no CAS on it is ever durable.
func (r *Store) Old() grant.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.old == nil {
		return nil
	}
	return &replaced{r, r.old}
}

// enter rejects invalid calls, and returns the server that a call uses: at, or
// the primary. The caller holds r.mu.
func (r *Store) enter(ctx context.Context, at *server, keys ...string) (*server, error) {
	if err := grant.CheckKey(keys...); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", grant.ErrNotSent, err)
	}
	if r.closed {
		return nil, fmt.Errorf("%w: storetest: the store is closed", grant.ErrNotSent)
	}
	r.init()
	if at == nil {
		at = r.primary
	}
	return at, nil
}

func (r *Store) getMany(ctx context.Context, at *server, keys []string) ([][]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, err := r.enter(ctx, at, keys...)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = bytes.Clone(at.values[key])
	}
	return values, nil
}

func (r *Store) cas(ctx context.Context, at *server, key string, old, next []byte) (bool, error) {
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	r.mu.Lock()
	at, err := r.enter(ctx, at, key)
	if err != nil {
		r.mu.Unlock()
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
		over, changed := at.replaced || r.closed || at.gaveUp >= here, r.changed
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

func (r *Store) list(ctx context.Context, at *server, prefix string, yield func(string, []byte) bool) error {
	r.mu.Lock()
	at, err := r.enter(ctx, at)
	if err != nil {
		r.mu.Unlock()
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

// Get returns the value of a key on the primary. It may be lost.
func (r *Store) Get(ctx context.Context, key string) ([]byte, error) {
	return first(r.getMany(ctx, nil, []string{key}))
}

// GetMany returns the values of all keys, as Get does.
func (r *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	return r.getMany(ctx, nil, keys)
}

// CAS replaces old by next, and waits for the standby.
func (r *Store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	return r.cas(ctx, nil, key, old, next)
}

// List calls yield for every key with the prefix. The values may be lost.
func (r *Store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	return r.list(ctx, nil, prefix, yield)
}

// Lineage counts what the primary has applied: a Failover can make it smaller.
func (r *Store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, err := r.enter(ctx, nil)
	if err != nil {
		return "", 0, err
	}
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

// A replaced is a client of a server that was replaced.
type replaced struct {
	r  *Store
	at *server
}

func (o *replaced) Get(ctx context.Context, key string) ([]byte, error) {
	return first(o.r.getMany(ctx, o.at, []string{key}))
}

func (o *replaced) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	return o.r.getMany(ctx, o.at, keys)
}

func (o *replaced) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	return o.r.cas(ctx, o.at, key, old, next)
}

func (o *replaced) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	return o.r.list(ctx, o.at, prefix, yield)
}

// Close does nothing: the data belongs to the Store.
func (o *replaced) Close() error { return nil }

func first(values [][]byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return values[0], nil
}
