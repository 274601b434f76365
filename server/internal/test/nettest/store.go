package nettest

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

// ErrCut is the error of a Store that is cut off, unless it has another one.
var ErrCut = errors.New("the store is cut off")

// A Store is a store that can be slow, or cut off: its requests then fail or
// hang. It has no optional interfaces.
type Store struct {
	grant.Store
	Delay time.Duration // of each request
	Err   error         // error of requests that fail; nil means ErrCut
	Cut   atomic.Bool
	Hangs atomic.Bool // requests wait until their context ends
	Reads atomic.Bool // it takes no writes: they fail
}

func (s *Store) err(ctx context.Context) error {
	if s.Delay > 0 {
		select {
		case <-time.After(s.Delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch {
	case s.Hangs.Load():
		<-ctx.Done()
		return ctx.Err()
	case s.Cut.Load():
		return cmp.Or(s.Err, ErrCut)
	}
	return nil
}

// Get implements grant.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.err(ctx); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

// CAS implements grant.Store.
func (s *Store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := s.err(ctx); err != nil {
		return false, err
	}
	if s.Reads.Load() {
		return false, cmp.Or(s.Err, grant.NotSent(ErrCut))
	}
	return s.Store.CAS(ctx, key, old, next)
}

// List implements grant.Store.
func (s *Store) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	if err := s.err(ctx); err != nil {
		return err
	}
	return s.Store.List(ctx, prefix, yield)
}
