package stores

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// What a Store is asked for, as a Begin is told.
const (
	Get     = "get"
	GetMany = "get many"
	CAS     = "cas"
	List    = "list"
	Lineage = "lineage"
	Time    = "time"
)

// A Begin is told of every call of a Store before it is made: what it is, and its key or
// prefix where it has one. It returns the context of the call, and a function that is told
// how it ended: whether a CAS was applied, and the error. It must be safe for use by many
// goroutines at once.
type Begin func(ctx context.Context, what, key string) (_ context.Context, end func(applied bool, err error))

// Wrap returns a Store that is s, and tells begin. It is a grant.MultiGetter and a
// grant.Watcher in any case: if s is not, GetMany calls Get for each key, and Watch returns
// a closed channel, as their contracts allow. Begin hears nothing of Watch.
//
// It is a grant.Lineage and a grant.Clock only if s is, because no answer of theirs means "I
// do not know". An ability with a neutral answer costs one method of wrapped; one without
// doubles the types below.
func Wrap(s grant.Store, begin Begin) grant.Store {
	w := &wrapped{s, begin}
	l, isLineage := s.(grant.Lineage)
	c, isClock := s.(grant.Clock)
	switch {
	case isLineage && isClock:
		return &struct {
			*wrapped
			lineage
			clock
		}{w, lineage{l, begin}, clock{c, begin}}
	case isLineage:
		return &struct {
			*wrapped
			lineage
		}{w, lineage{l, begin}}
	case isClock:
		return &struct {
			*wrapped
			clock
		}{w, clock{c, begin}}
	}
	return w
}

type wrapped struct {
	grant.Store
	begin Begin
}

// Window is the default of the store, for grant.DefaultConfig; 0 where it has none.
func (w *wrapped) Window() time.Duration {
	if s, ok := w.Store.(interface{ Window() time.Duration }); ok {
		return s.Window()
	}
	return 0
}

func (w *wrapped) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, end := w.begin(ctx, Get, key)
	value, err := w.Store.Get(ctx, key)
	end(false, err)
	return value, err
}

func (w *wrapped) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	ctx, end := w.begin(ctx, CAS, key)
	applied, err := w.Store.CAS(ctx, key, old, next)
	end(applied, err)
	return applied, err
}

func (w *wrapped) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	ctx, end := w.begin(ctx, List, prefix)
	err := w.Store.List(ctx, prefix, yield)
	end(false, err)
	return err
}

func (w *wrapped) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	m, ok := w.Store.(grant.MultiGetter)
	if !ok {
		return w.getEach(ctx, keys)
	}
	ctx, end := w.begin(ctx, GetMany, "")
	values, err := m.GetMany(ctx, keys)
	end(false, err)
	return values, err
}

// getEach is GetMany of a Store that cannot.
func (w *wrapped) getEach(ctx context.Context, keys []string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, key := range keys {
		var err error
		if values[i], err = w.Get(ctx, key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (w *wrapped) Watch(ctx context.Context, key string) <-chan struct{} {
	if s, ok := w.Store.(grant.Watcher); ok {
		return s.Watch(ctx, key)
	}
	nothing := make(chan struct{})
	close(nothing)
	return nothing
}

type lineage struct {
	l     grant.Lineage
	begin Begin
}

func (l lineage) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	ctx, end := l.begin(ctx, Lineage, "")
	identity, revision, err = l.l.Lineage(ctx)
	end(false, err)
	return identity, revision, err
}

type clock struct {
	c     grant.Clock
	begin Begin
}

func (c clock) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	ctx, end := c.begin(ctx, Time, "")
	now, resolution, err = c.c.Time(ctx)
	end(false, err)
	return now, resolution, err
}

// An Answers knows whether a Store has answered the last call that was made of it, and
// for how long it has not. Its zero value knows of no call. It is safe for use by many
// goroutines at once.
type Answers struct {
	mu            sync.Mutex // guards what follows
	up, known     bool
	reads, writes silence
}

// A silence is a time without an answer to calls of one sort.
type silence struct {
	answered time.Time // when the last call ended that was answered
	since    time.Time // when the first call began that failed after that; zero if none did
	failed   time.Time // when the last of these ended

	pending int       // calls under way
	waiting time.Time // since when one is, and none was answered
}

// Begin is told of the calls, as by Wrap. Those that their caller has given up do not count,
// nor does Time: a Store may be up and not say its time.
func (a *Answers) Begin(ctx context.Context, what, _ string) (context.Context, func(bool, error)) {
	if what == Time {
		return ctx, func(bool, error) {}
	}
	begin := time.Now()
	s := &a.reads
	if what == CAS {
		s = &a.writes
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.pending++; s.pending == 1 {
		s.waiting = begin
	}
	return ctx, func(_ bool, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		s.pending--
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		a.up, a.known = err == nil, true
		now := time.Now()
		switch {
		case err != nil:
			s.fail(begin, now)
		case s == &a.writes || !a.reads.since.IsZero():
			// A Store that writes also reads. One that was silent as a whole and reads again
			// may write again.
			a.reads.end(now)
			a.writes.end(now)
		default:
			s.end(now)
		}
	}
}

// end notes that a call was answered.
func (s *silence) end(now time.Time) {
	s.answered, s.since, s.waiting = now, time.Time{}, now
}

// fail notes that a call was not.
func (s *silence) fail(begin, now time.Time) {
	if s.since.IsZero() || begin.Sub(s.failed) > silentFor {
		s.since = begin
		if s.answered.After(begin) { // others were answered while it was under way
			s.since = s.answered
		}
	}
	s.failed = now
}

// Up reports whether the last call was answered; known is false as long as there was none.
func (a *Answers) Up() (up, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.up, a.known
}

// silentFor is how long what a call has shown counts, if no other call is made.
const silentFor = 15 * time.Second

// Silent is how long the Store has answered no read and no write, as far as calls were
// made: from the beginning of the first that failed to the end of the last, or as long as
// one is under way. A Store that cannot write, such as a database whose standby is
// missing, may answer reads. A time is 0 if the last such call was answered, or is long
// ago.
func (a *Answers) Silent() (reads, writes time.Duration) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads.lasts(now), a.writes.lasts(now)
}

func (s *silence) lasts(now time.Time) (d time.Duration) {
	if !s.since.IsZero() && now.Sub(s.failed) <= silentFor {
		d = s.failed.Sub(s.since)
	}
	if s.pending > 0 {
		d = max(d, now.Sub(s.waiting))
	}
	return d
}
