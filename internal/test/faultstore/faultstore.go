// Package faultstore is a store for tests that fails as a test wants.
package faultstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

// errCut is the error of a Store without another one.
var errCut = errors.New("the store is cut off")

// A Store passes requests on to another store, and can be slow, cut off, or
// fail in any other way. It has no optional interfaces.
type Store struct {
	grant.Store
	Delay time.Duration // of each answer; one that comes too late is lost
	Err   error         // error of requests that fail; nil means one of its own
	Cut   atomic.Bool   // requests fail
	Hangs atomic.Bool   // requests wait until their context ends
	Reads atomic.Bool   // it takes no writes: they fail

	// Fault, if not nil, answers the requests in any other case: it calls
	// r.Do or not, and the request ends with its error.
	Fault func(ctx context.Context, r Request) error

	Requests, Writes atomic.Int64 // so far
}

// A Request is one of a Store.
type Request struct {
	Kind      grant.Request
	Key       string                  // or the prefix
	Old, Next []byte                  // of a CAS
	Do        func() error            // passes it on
	DoIn      func(grant.Store) error // passes it on to that store instead
}

func (s *Store) answer(ctx context.Context, r Request) error {
	r.Do = func() error { return r.DoIn(s.Store) }
	s.Requests.Add(1)
	if r.Kind == grant.RequestCAS {
		s.Writes.Add(1)
	}
	switch {
	case s.Hangs.Load():
		<-ctx.Done()
		return ctx.Err()
	case s.Cut.Load():
		return cmp.Or(s.Err, errCut)
	case s.Reads.Load() && r.Kind == grant.RequestCAS:
		return cmp.Or(s.Err, grant.NotSent(errCut))
	case s.Fault != nil:
		return s.Fault(ctx, r)
	}
	err := r.Do()
	if s.Delay > 0 {
		select {
		case <-time.After(s.Delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// Get implements grant.Store.
func (s *Store) Get(ctx context.Context, key string) (value []byte, err error) {
	err = s.answer(ctx, Request{Kind: grant.RequestGet, Key: key, DoIn: func(in grant.Store) (err error) {
		value, err = in.Get(ctx, key)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// CAS implements grant.Store.
func (s *Store) CAS(ctx context.Context, key string, old, next []byte) (applied bool, err error) {
	err = s.answer(ctx, Request{Kind: grant.RequestCAS, Key: key, Old: old, Next: next, DoIn: func(in grant.Store) (err error) {
		applied, err = in.CAS(ctx, key, old, next)
		return err
	}})
	return applied && err == nil, err
}

// List implements grant.Store. If it fails after it was passed on, it has
// called yield for the first key alone.
func (s *Store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	var keys []string
	var values [][]byte
	err := s.answer(ctx, Request{Kind: grant.RequestList, Key: prefix, DoIn: func(in grant.Store) error {
		return in.List(ctx, prefix, func(key string, value []byte) bool {
			keys, values = append(keys, key), append(values, bytes.Clone(value))
			return true
		})
	}})
	if err != nil {
		keys = keys[:min(1, len(keys))]
	}
	for i, key := range keys {
		if !yield(key, values[i]) {
			break
		}
	}
	return err
}

// A Timed is a Store with a clock of its own.
type Timed struct {
	grant.Store
	Now func() time.Time
}

// Time implements grant.Clock.
func (s Timed) Time(context.Context) (time.Time, time.Duration, error) {
	return s.Now(), time.Millisecond, nil
}

// Abilities returns which optional interfaces a Store has, by grant.As: in
// order, MultiGetter, Watcher, Lineage, Clock, Dangers and Paced.
func Abilities(s grant.Store) [6]bool {
	_, many := grant.As[grant.MultiGetter](s)
	_, watch := grant.As[grant.Watcher](s)
	_, line := grant.As[grant.Lineage](s)
	_, clock := grant.As[grant.Clock](s)
	_, dangers := grant.As[grant.Dangers](s)
	_, pace := grant.As[grant.Paced](s)
	return [...]bool{many, watch, line, clock, dangers, pace}
}
