package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/firnid/firn/grant"
)

var (
	_ grant.Store       = (*Store)(nil)
	_ grant.MultiGetter = (*Store)(nil)
	_ grant.Watcher     = (*Store)(nil)
)

// A Store is a grant.Store in the memory of one process. The zero Store is
// empty and ready to use. It is safe for concurrent use by multiple goroutines
// and must not be copied.
//
// Every method takes effect at one moment, including List, which yields the
// values at the time of the call. Watch reports every applied CAS, but combines
// several if the watcher does not receive in between. After Close the values
// are gone.
type Store struct {
	mu       sync.Mutex        // guards all fields; never held while a caller's code runs
	values   map[string][]byte // a value is never changed, only replaced
	watchers map[string]map[chan struct{}]bool
	closed   bool
}

// refuse returns an error if a key is invalid, the context is done or the store
// is closed. The caller holds s.mu, so that nothing happens between the check
// and the call.
func (s *Store) refuse(ctx context.Context, keys ...string) error {
	if err := cmp.Or(grant.CheckKey(keys...), grant.NotSent(ctx.Err())); err != nil {
		return err
	}
	if s.closed {
		return fmt.Errorf("%w: memstore: the store is closed", grant.ErrNotSent)
	}
	return nil
}

// Get returns a copy of the value of a key, or nil.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse(ctx, key); err != nil {
		return nil, err
	}
	return bytes.Clone(s.values[key]), nil
}

// GetMany returns copies of the values of all keys, all at one moment.
func (s *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse(ctx, keys...); err != nil {
		return nil, err
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = bytes.Clone(s.values[key])
	}
	return values, nil
}

// CAS replaces old by next; see grant.Store. Its result is never unknown: every
// error matches grant.ErrNotSent.
func (s *Store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(s.refuse(ctx, key), grant.CheckValue(next)); err != nil {
		return false, err
	}
	if !bytes.Equal(s.values[key], old) { // an absent value equals nil
		return false, nil
	}
	if s.values == nil {
		s.values = make(map[string][]byte)
	}
	s.values[key] = bytes.Clone(next)
	for changed := range s.watchers[key] {
		select {
		case changed <- struct{}{}:
		default: // a value is already waiting
		}
	}
	return true, nil
}

// List calls yield for every key with the prefix, with the values at the time
// of the call.
func (s *Store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	found := make(map[string][]byte)
	s.mu.Lock()
	err := s.refuse(ctx)
	if err == nil {
		for key, value := range s.values {
			if strings.HasPrefix(key, prefix) {
				found[key] = value
			}
		}
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !yield(key, bytes.Clone(found[key])) {
			break
		}
	}
	return nil
}

// Watch reports changes of a key until ctx is done or the store is closed.
func (s *Store) Watch(ctx context.Context, key string) <-chan struct{} {
	changed := make(chan struct{}, 1) // so that notifying never waits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse(ctx, key) != nil {
		close(changed) // no change can follow
		return changed
	}
	if s.watchers == nil {
		s.watchers = make(map[string]map[chan struct{}]bool)
	}
	if s.watchers[key] == nil {
		s.watchers[key] = make(map[chan struct{}]bool)
	}
	s.watchers[key][changed] = true
	// It runs in its own goroutine, so it can wait for s.mu even if ctx is
	// already done.
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.watchers[key][changed] {
			return // Close came first
		}
		delete(s.watchers[key], changed)
		if len(s.watchers[key]) == 0 {
			delete(s.watchers, key)
		}
		close(changed)
	})
	return changed
}

// Close closes the store and ends all watches. It always returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, watchers := range s.watchers {
		for changed := range watchers {
			close(changed)
		}
	}
	s.values, s.watchers, s.closed = nil, nil, true
	return nil
}
