// Package replicated is a store for testing code that uses stores: in a
// failover, it loses values that only a read has shown.
package replicated

import (
	"context"
	"errors"
	"sync"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
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
	primary server
	standby server        // while it does not follow
	cut     chan struct{} // closed when waits end; nil while the standby follows
}

// A server has values, and counts the writes of them.
type server struct {
	*memstore.Store // nil if it is empty
	writes          int64
}

// clone returns a server with the same values.
func (s server) clone() server {
	again := server{new(memstore.Store), s.writes}
	ctx := context.Background()
	_ = s.List(ctx, "", func(key string, value []byte) bool {
		_, err := again.CAS(ctx, key, nil, value)
		return err == nil
	})
	return again
}

var (
	_ grant.Store       = (*Store)(nil)
	_ grant.MultiGetter = (*Store)(nil)
	_ grant.Lineage     = (*Store)(nil)
)

// errWait is the error of a CAS that is applied on the primary alone, as far as
// is known.
var errWait = errors.New("replicated: applied at the primary, and perhaps not at the standby")

// lock locks r, and makes its primary if it is empty.
func (r *Store) lock() (unlock func()) {
	r.mu.Lock()
	if r.primary.Store == nil {
		r.primary.Store = new(memstore.Store)
	}
	return r.mu.Unlock
}

// StopStandby makes the standby stop following the primary: from now on every
// CAS waits.
func (r *Store) StopStandby() {
	defer r.lock()()
	if r.cut == nil {
		r.standby, r.cut = r.primary.clone(), make(chan struct{})
	}
}

// Failover makes the standby the primary: what it lacks is lost, and waits end
// with an unknown result. The new primary has a standby of its own.
func (r *Store) Failover() {
	defer r.lock()()
	if r.cut != nil {
		close(r.cut)
		r.primary, r.cut = r.standby, nil
	}
}

// currentPrimary returns the primary.
func (r *Store) currentPrimary() server {
	defer r.lock()()
	return r.primary
}

// Get returns the value of a key on the primary. It may be lost.
func (r *Store) Get(ctx context.Context, key string) ([]byte, error) {
	return r.currentPrimary().Get(ctx, key)
}

// GetMany returns the values of all keys, as Get does.
func (r *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	return r.currentPrimary().GetMany(ctx, keys)
}

// List calls yield for every key with the prefix. The values may be lost.
func (r *Store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	return r.currentPrimary().List(ctx, prefix, yield)
}

// CAS replaces old by next, and waits for the standby.
func (r *Store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	unlock := r.lock()
	applied, err := r.primary.CAS(ctx, key, old, next)
	if applied {
		r.primary.writes++
	}
	cut := r.cut
	unlock()
	if !applied || cut == nil {
		return applied, err
	}
	select {
	case <-ctx.Done():
	case <-cut:
	}
	return false, errors.Join(errWait, ctx.Err())
}

// Lineage counts what the primary has applied: a Failover can make it smaller.
func (r *Store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	defer r.lock()()
	if _, err := r.primary.GetMany(ctx, nil); err != nil {
		return "", 0, err
	}
	return "replicated", r.primary.writes, nil
}

// Close closes the store and ends all waits.
func (r *Store) Close() error {
	r.Failover()
	return r.currentPrimary().Close()
}
