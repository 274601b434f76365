package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
)

// optional returns the store as one of the optional interfaces, or skips the
// test.
func optional[T any](s *subject) T {
	s.t.Helper()
	t, ok := grant.As[T](s.Store)
	if !ok {
		s.t.Skip("the store does not implement", reflect.TypeFor[T]())
	}
	return t
}

func testGetMany(t *testing.T, su suite) {
	s := su.new(t)
	m := optional[grant.MultiGetter](s)
	got, err := m.GetMany(s.ctx, nil)
	if err != nil || len(got) != 0 {
		t.Errorf("GetMany of no keys = %q, %v, want none", got, err)
	}
	keys := numbered("many/%03d", 300) // more than stores read at once
	s.fill(keys)
	for _, n := range []int{0, 7, 49, 140, 299} {
		s.cas(keys[n], "0", "of "+keys[n])
	}
	ask := []string{"many/007", "absent", "many/049", "many/000", "many/007", "many/007/x", "many"}
	want := [][]byte{[]byte("of many/007"), nil, []byte("of many/049"), []byte("of many/000"), []byte("of many/007"),
		nil, nil}
	// A member that reads an earlier record of its own takes it for a store that
	// went back.
	got, err = m.GetMany(s.ctx, ask)
	same := func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
	if err != nil || !slices.EqualFunc(got, want, same) {
		t.Fatalf("GetMany(%q) = %q, %v, want %q", ask, got, err, want)
	}
	got, err = m.GetMany(s.ctx, keys)
	if err != nil || len(got) != len(keys) || string(got[140]) != "of many/140" || string(got[299]) != "of many/299" ||
		string(got[298]) != "0" {
		t.Errorf("GetMany of %d keys = %d values, %v, or values of other keys", len(keys), len(got), err)
	}
	for _, value := range got {
		scribble(value)
	}
	s.want("many/007", "of many/007")

	_, err = m.GetMany(s.ctx, []string{"many/007", "a//b"})
	calls.Error(t, `GetMany of "a//b"`, err, grant.ErrNotSent)
}

// testGetManyInOrder reads two keys together while a goroutine writes the first
// after the second.
func testGetManyInOrder(t *testing.T, su suite) {
	s := su.new(t)
	m := optional[grant.MultiGetter](s)
	keys := numbered("order/%d", 2)
	s.fill(keys)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	var wg sync.WaitGroup
	written := make(chan struct{}, 1) // all keys have been, once more
	wg.Go(func() {
		for i := 0; ctx.Err() == nil && !t.Failed(); i++ {
			for _, key := range slices.Backward(keys) {
				calls.CAS(t, s, key, strconv.Itoa(i), strconv.Itoa(i+1))
			}
			select {
			case written <- struct{}{}:
			default:
			}
		}
	})
	for reads, begin := 0, time.Now(); (reads < 20 || time.Since(begin) < busy) && !t.Failed(); reads++ {
		values, err := m.GetMany(s.ctx, keys)
		if err != nil || len(values) != len(keys) {
			t.Errorf("GetMany = %q, %v", values, err)
			break
		}
		last := 0
		for i, value := range values {
			n, err := strconv.Atoi(string(value))
			if err != nil || n < last {
				t.Errorf("GetMany(%q) = %q: the value of %q is older than a previous one", keys, values, keys[i])
				break
			}
			last = n
		}
		if reads%4 == 0 { // otherwise the writer may not run
			select {
			case <-written:
			case <-time.After(soon):
			}
		}
	}
	cancel()
	wg.Wait()
}

func testWatch(t *testing.T, su suite) {
	s := su.new(t)
	w := optional[grant.Watcher](s)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	read, unread := w.Watch(ctx, "a"), w.Watch(ctx, "a")
	s.cas("a", "", "0")
	told := false
	for i := range 100 { // the other channel is not read
		s.cas("a", fmt.Sprint(i), fmt.Sprint(i+1))
		select {
		case _, open := <-read:
			if !open {
				t.Fatalf("the channel of Watch was closed without a reason")
			}
			told = true
		default:
		}
	}
	t.Logf("Watch told of a change: %v", told)
	cancel()
	su.wantDone(t, "the channel of Watch whose context is done", read)
	su.wantDone(t, "the channel of Watch whose context is done", unread)
	su.wantDone(t, "the channel of Watch with a context that was done before", w.Watch(ctx, "a"))

	ctx, cancel = context.WithCancel(s.ctx)
	open := w.Watch(ctx, "a")
	must.Do(t, s.Close()) // with a watcher
	cancel()
	su.wantDone(t, "the channel of Watch whose context is done after Close", open)
	ctx, cancel = context.WithCancel(s.ctx)
	late := w.Watch(ctx, "a")
	cancel()
	su.wantDone(t, "the channel of Watch after Close", late)
}

// wantDone fails the test unless the channel is closed soon.
func (su suite) wantDone(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	timeout := time.After(soon)
	for {
		select {
		case _, open := <-c:
			if !open {
				return
			}
		case <-timeout:
			t.Errorf("%s is still open after %v", what, soon)
			return
		}
	}
}

func testLineage(t *testing.T, su suite) {
	s := su.new(t)
	l := optional[grant.Lineage](s)
	identity, revision, err := l.Lineage(s.ctx)
	if err != nil || identity == "" {
		t.Fatalf("Lineage = %q, %d, %v, want an identity", identity, revision, err)
	}
	last := ""
	for i := range 10 {
		s.cas("a", last, fmt.Sprint(i))
		last = fmt.Sprint(i)
		id, rev, err := l.Lineage(s.ctx)
		if err != nil || id != identity || rev < revision || rev == revision && rev != 0 { // 0 if there are none
			t.Fatalf("Lineage = %q, %d, %v after %q, %d and an applied CAS: want the same identity and a greater revision",
				id, rev, err, identity, revision)
		}
		revision = rev
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, _, err := l.Lineage(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Lineage with a context that is done = %v, want context.Canceled", err)
	}
	if su.reopen == nil {
		return
	}
	must.Do(t, s.Close())
	again := su.again(t, s)
	id, rev, err := again.Store.(grant.Lineage).Lineage(again.ctx)
	if err != nil || id != identity || rev < revision {
		t.Errorf("Lineage = %q, %d, %v after opening again, want %q and at least %d", id, rev, err, identity, revision)
	}
}

func testClock(t *testing.T, su suite) {
	s := su.new(t)
	c := optional[grant.Clock](s)
	first, resolution, err := c.Time(s.ctx)
	switch {
	case err != nil:
		t.Fatalf("Time = %v", err)
	case first.IsZero() || resolution < 0 || resolution > time.Second:
		t.Fatalf("Time = %v, %v, want a time, known to the second at least", first, resolution)
	}
	// A clock that returns the start of a session or a transaction stands
	// still.
	for begin, last := time.Now(), first; !last.After(first); time.Sleep(time.Millisecond) {
		now, _, err := c.Time(s.ctx)
		switch {
		case err != nil || now.Before(last):
			t.Fatalf("Time = %v, %v after %v", now, err, last)
		case time.Since(begin) > soon+resolution:
			t.Fatalf("Time = %v, and still so after %v", now, time.Since(begin))
		}
		last = now
	}
}
