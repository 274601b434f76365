package storehealth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/stores"
)

// OpenOrWait opens a store as open does. If that reports that the store is
// unreachable, it returns a Store all the same, and retries until Close. Until
// open succeeds, calls of that Store fail at once with the last reason and
// match grant.ErrNotSent. It logs the beginning, the end, and once a minute.
//
// If open meanwhile fails for another reason, such as a rejected password,
// failed is called once and the Store stays unreachable.
func OpenOrWait(ctx context.Context, open func(context.Context) (grant.Store, error), log *slog.Logger,
	failed func(error)) (grant.Store, error) {
	s, err := open(ctx)
	var e *stores.Error
	if err == nil || !errors.As(err, &e) || !e.Unreachable {
		return s, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &pendingStore{open: open, log: log, failed: failed, end: end, ended: make(chan struct{}), err: err}
	log.Warn("store unreachable: starting without it and retrying", "error", err, "hint", e.Hint)
	go p.run(life)
	return p, nil
}

// A pendingStore is a Store that is being opened in the background.
//
// It has all optional interfaces, and from when it is open, grant.As reports
// those of the store. A channel of Watch from before that is closed at once.
type pendingStore struct {
	open   func(context.Context) (grant.Store, error)
	log    *slog.Logger
	failed func(error)
	end    context.CancelFunc
	ended  chan struct{} // closed when run has returned

	mu    sync.Mutex // guards the fields below
	store grant.Store
	err   error // why the store is not open yet
}

// The first and the longest pause between attempts, and how often they are
// logged.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	remindEvery  = time.Minute
)

func (p *pendingStore) run(ctx context.Context) {
	defer close(p.ended)
	begin := time.Now()
	warned, pause := begin, firstPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
		s, err := p.open(ctx)
		p.mu.Lock()
		p.store, p.err = s, err
		p.mu.Unlock()
		var e *stores.Error
		switch {
		case err == nil:
			p.log.Info("store reachable", "after", time.Since(begin).Round(time.Millisecond).String())
			return
		case ctx.Err() != nil:
			return
		case !errors.As(err, &e) || !e.Unreachable:
			p.failed(err)
			return
		}
		if now := time.Now(); now.Sub(warned) >= remindEvery {
			warned = now
			p.log.Warn("store still unreachable", "for", now.Sub(begin).Round(time.Second).String(), "error", err,
				"hint", e.Hint)
		}
	}
}

// with calls f with the store as an S, grant.Store or one of its optional
// interfaces, once it is open.
func with[S any](p *pendingStore, f func(S) error) error {
	p.mu.Lock()
	s, reason := p.store, p.err
	p.mu.Unlock()
	if s == nil {
		return fmt.Errorf("%w: not opened yet: %w", grant.ErrNotSent, reason)
	}
	t, ok := grant.As[S](s)
	if !ok {
		return errors.ErrUnsupported
	}
	return f(t)
}

// Unwrap returns the store, for grant.As; nil until it is open.
func (p *pendingStore) Unwrap() grant.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.store
}

func (p *pendingStore) Get(ctx context.Context, key string) (value []byte, err error) {
	err = with(p, func(s grant.Store) error { value, err = s.Get(ctx, key); return err })
	return value, err
}

func (p *pendingStore) CAS(ctx context.Context, key string, old, next []byte) (applied bool, err error) {
	err = with(p, func(s grant.Store) error { applied, err = s.CAS(ctx, key, old, next); return err })
	return applied, err
}

func (p *pendingStore) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	return with(p, func(s grant.Store) error { return s.List(ctx, prefix, yield) })
}

func (p *pendingStore) GetMany(ctx context.Context, keys []string) (values [][]byte, err error) {
	err = with(p, func(s grant.MultiGetter) error { values, err = s.GetMany(ctx, keys); return err })
	return values, err
}

func (p *pendingStore) Watch(ctx context.Context, key string) (changes <-chan struct{}) {
	if with(p, func(s grant.Watcher) error { changes = s.Watch(ctx, key); return nil }) != nil {
		nothing := make(chan struct{})
		close(nothing)
		return nothing
	}
	return changes
}

func (p *pendingStore) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	err = with(p, func(s grant.Lineage) error { identity, revision, err = s.Lineage(ctx); return err })
	return identity, revision, err
}

func (p *pendingStore) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	err = with(p, func(s grant.Clock) error { now, resolution, err = s.Time(ctx); return err })
	return now, resolution, err
}

func (p *pendingStore) Dangers(ctx context.Context) (dangers []string, err error) {
	err = with(p, func(s grant.Dangers) error { dangers, err = s.Dangers(ctx); return err })
	return dangers, err
}

// Pace returns the pace of the store, as far as it is known.
func (p *pendingStore) Pace() (pace grant.Pace) {
	with(p, func(s grant.Paced) error { pace = s.Pace(); return nil })
	return pace
}

func (p *pendingStore) Close() error {
	p.end()
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil {
		return nil
	}
	return p.store.Close()
}
