package health

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
func OpenOrWait(ctx context.Context, open func(context.Context) (grant.Store, error), log *slog.Logger, failed func(error)) (grant.Store, error) {
	s, err := open(ctx)
	var e *stores.Error
	if err == nil || !errors.As(err, &e) || !e.Unreachable {
		return s, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	w := &pendingStore{open: open, log: log, failed: failed, end: end, ended: make(chan struct{}), err: err}
	log.Warn("store unreachable: starting without it and retrying", "error", err, "hint", e.Hint)
	go w.run(life)
	return w, nil
}

// A pendingStore is a Store that is being opened in the background.
//
// It has all optional interfaces. So have the stores that can be waited for,
// except Watcher, whose channel may be closed at once.
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

func (w *pendingStore) run(ctx context.Context) {
	defer close(w.ended)
	begin := time.Now()
	warned, pause := begin, firstPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
		s, err := w.open(ctx)
		w.mu.Lock()
		w.store, w.err = s, err
		w.mu.Unlock()
		var e *stores.Error
		switch {
		case err == nil:
			w.log.Info("store reachable", "after", time.Since(begin).Round(time.Millisecond).String())
			return
		case ctx.Err() != nil:
			return
		case !errors.As(err, &e) || !e.Unreachable:
			w.failed(err)
			return
		}
		if now := time.Now(); now.Sub(warned) >= remindEvery {
			warned = now
			w.log.Warn("store still unreachable", "for", now.Sub(begin).Round(time.Second).String(), "error", err,
				"hint", e.Hint)
		}
	}
}

// get returns the store once it is open.
func (w *pendingStore) get() (grant.Store, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store == nil {
		return nil, fmt.Errorf("%w: not opened yet: %w", grant.ErrNotSent, w.err)
	}
	return w.store, nil
}

// optional returns the store as one of its optional interfaces.
func optional[T any](w *pendingStore) (t T, err error) {
	s, err := w.get()
	if err != nil {
		return t, err
	}
	t, ok := grant.As[T](s)
	if !ok {
		return t, errors.ErrUnsupported
	}
	return t, nil
}

func (w *pendingStore) Get(ctx context.Context, key string) ([]byte, error) {
	s, err := w.get()
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, key)
}

func (w *pendingStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	s, err := w.get()
	if err != nil {
		return false, err
	}
	return s.CAS(ctx, key, old, next)
}

func (w *pendingStore) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	s, err := w.get()
	if err != nil {
		return err
	}
	return s.List(ctx, prefix, yield)
}

func (w *pendingStore) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	s, err := optional[grant.MultiGetter](w)
	if err != nil {
		return nil, err
	}
	return s.GetMany(ctx, keys)
}

func (w *pendingStore) Watch(ctx context.Context, key string) <-chan struct{} {
	s, err := optional[grant.Watcher](w)
	if err != nil {
		nothing := make(chan struct{})
		close(nothing)
		return nothing
	}
	return s.Watch(ctx, key)
}

func (w *pendingStore) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	s, err := optional[grant.Lineage](w)
	if err != nil {
		return "", 0, err
	}
	return s.Lineage(ctx)
}

func (w *pendingStore) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	s, err := optional[grant.Clock](w)
	if err != nil {
		return now, 0, err
	}
	return s.Time(ctx)
}

func (w *pendingStore) Check(ctx context.Context) (dangers []string, err error) {
	s, err := optional[grant.Checker](w)
	if err != nil {
		return nil, err
	}
	return s.Check(ctx)
}

// Window returns the default window of the store, or 0 if it has none.
func (w *pendingStore) Window() time.Duration {
	s, err := optional[interface{ Window() time.Duration }](w)
	if err != nil {
		return 0
	}
	return s.Window()
}

// PresenceEvery returns how often servers write to the store that they are
// there, or 0 if it does not say.
func (w *pendingStore) PresenceEvery() time.Duration {
	s, err := optional[interface{ PresenceEvery() time.Duration }](w)
	if err != nil {
		return 0
	}
	return s.PresenceEvery()
}

func (w *pendingStore) Close() error {
	w.end()
	<-w.ended
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store == nil {
		return nil
	}
	return w.store.Close()
}
