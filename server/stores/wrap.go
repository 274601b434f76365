package stores

import (
	"context"
	"errors"
	"sync/atomic"
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
)

// A Begin is told of every call of a Store before it is made: what it is, and its key or
// prefix where it has one. It returns the context of the call, and a function that is told
// how it ended: whether a CAS was applied, and the error. It must be safe for use by many
// goroutines at once.
type Begin func(ctx context.Context, what, key string) (_ context.Context, end func(applied bool, err error))

// Wrap returns a Store that is s, and tells begin. It is a grant.MultiGetter, a
// grant.Watcher and a grant.Lineage where s is: without the last, a member would not notice
// that the store went back. Watch is not told.
func Wrap(s grant.Store, begin Begin) grant.Store {
	w := &wrapped{s, begin}
	m, isMany := s.(grant.MultiGetter)
	watch, isWatch := s.(grant.Watcher)
	l, isLineage := s.(grant.Lineage)
	many, line := manyGetter{m, begin}, lineage{l, begin}
	switch {
	case isMany && isWatch && isLineage:
		return &struct {
			*wrapped
			manyGetter
			grant.Watcher
			lineage
		}{w, many, watch, line}
	case isMany && isWatch:
		return &struct {
			*wrapped
			manyGetter
			grant.Watcher
		}{w, many, watch}
	case isMany && isLineage:
		return &struct {
			*wrapped
			manyGetter
			lineage
		}{w, many, line}
	case isWatch && isLineage:
		return &struct {
			*wrapped
			grant.Watcher
			lineage
		}{w, watch, line}
	case isMany:
		return &struct {
			*wrapped
			manyGetter
		}{w, many}
	case isWatch:
		return &struct {
			*wrapped
			grant.Watcher
		}{w, watch}
	case isLineage:
		return &struct {
			*wrapped
			lineage
		}{w, line}
	}
	return w
}

type wrapped struct {
	grant.Store
	begin Begin
}

// Window is the usual one of the store, for grant.UsualConfig; 0 where it has none.
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

type manyGetter struct {
	m     grant.MultiGetter
	begin Begin
}

func (g manyGetter) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	ctx, end := g.begin(ctx, GetMany, "")
	values, err := g.m.GetMany(ctx, keys)
	end(false, err)
	return values, err
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

// An Answers knows whether a Store has answered the last call that was made of it. Its zero
// value knows of none. It is safe for use by many goroutines at once.
type Answers struct{ last atomic.Int32 }

// Begin is told of the calls, as by Wrap. Those that their caller has given up do not count.
func (a *Answers) Begin(ctx context.Context, _, _ string) (context.Context, func(bool, error)) {
	return ctx, func(_ bool, err error) {
		switch {
		case err == nil:
			a.last.Store(1)
		case !errors.Is(ctx.Err(), context.Canceled):
			a.last.Store(-1)
		}
	}
}

// Up reports whether the last call was answered; known is false as long as there was none.
func (a *Answers) Up() (up, known bool) {
	last := a.last.Load()
	return last > 0, last != 0
}
