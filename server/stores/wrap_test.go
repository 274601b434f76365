package stores

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/grant/storetest"
)

// A plain store can do what a Store must, and a watching one can watch beside it.
type (
	plain    struct{ grant.Store }
	watching struct {
		grant.Store
		grant.Watcher
	}
	many struct {
		grant.Store
		grant.MultiGetter
	}
)

// TestWrap: a Store that is wrapped can do what it could, and no more, and all calls are
// told.
func TestWrap(t *testing.T) {
	m := new(memstore.Store)
	for what, tt := range map[string]struct {
		s           grant.Store
		many, watch bool
	}{"all": {m, true, true}, "plain": {plain{m}, false, false}, "watching": {watching{m, m}, false, true}, "many": {many{m, m}, true, false}} {
		var told []string
		type key struct{}
		s := Wrap(tt.s, func(ctx context.Context, what, k string) (context.Context, func(bool, error)) {
			return context.WithValue(ctx, key{}, true), func(applied bool, err error) {
				told = append(told, fmt.Sprintf("%s %s %t %v", what, k, applied, err))
			}
		})
		multi, isMany := s.(grant.MultiGetter)
		if _, isWatch := s.(grant.Watcher); isMany != tt.many || isWatch != tt.watch {
			t.Errorf("%s: it reads many keys: %t, and watches: %t", what, isMany, isWatch)
		}
		ctx := t.Context()
		_, _ = s.CAS(ctx, what, nil, []byte("a"))
		_, _ = s.CAS(ctx, what, nil, []byte("a"))
		if v, err := s.Get(ctx, what); string(v) != "a" || err != nil {
			t.Errorf("%s: %q, %v", what, v, err)
		}
		_ = s.List(ctx, what, func(string, []byte) bool { return true })
		want := []string{"cas " + what + " true <nil>", "cas " + what + " false <nil>", "get " + what + " false <nil>", "list " + what + " false <nil>"}
		if isMany {
			if v, err := multi.GetMany(ctx, []string{what}); err != nil || string(v[0]) != "a" {
				t.Errorf("%s: %q, %v", what, v, err)
			}
			want = append(want, "get many  false <nil>")
		}
		if !slices.Equal(told, want) {
			t.Errorf("%s: told %q, want %q", what, told, want)
		}
	}
}

// TestWrapSuite: the conformance suite of stores.
func TestWrapSuite(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	storetest.Run(t, func(*testing.T) grant.Store {
		return Wrap(new(memstore.Store), func(ctx context.Context, _, _ string) (context.Context, func(bool, error)) {
			return ctx, func(bool, error) { mu.Lock(); calls++; mu.Unlock() }
		})
	})
	if calls == 0 {
		t.Error("no call was told")
	}
}

// TestAnswers: what counts is the last call that was not given up.
func TestAnswers(t *testing.T) {
	var a Answers
	fail := errors.New("away")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	for i, step := range []struct {
		ctx       context.Context
		err       error
		up, known bool
	}{
		{cancelled, context.Canceled, false, false},
		{t.Context(), nil, true, true}, {cancelled, context.Canceled, true, true}, {t.Context(), fail, false, true},
		{cancelled, context.Canceled, false, true}, {t.Context(), nil, true, true}, {late, context.DeadlineExceeded, false, true}, {cancelled, nil, true, true},
	} {
		_, end := a.Begin(step.ctx, Get, "k")
		end(false, step.err)
		if up, known := a.Up(); up != step.up || known != step.known {
			t.Errorf("step %d: up %t, known %t", i, up, known)
		}
	}
}
