package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/history"
	"github.com/firnid/firn/internal/test/must"
)

func testContextBefore(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "1")
	canceled, cancel := context.WithCancel(s.ctx)
	cancel()
	late, cancel := context.WithDeadline(s.ctx, time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{canceled, late} {
		s.wantRefused(ctx, "with a context that is done", ctx.Err())
	}
	s.want("a", "1")
	s.want("b", "")
}

func testClose(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "0")
	s.cas("a", "0", "1")
	must.Do(t, s.Close())
	s.wantRefused(s.ctx, "after Close")
	if err := s.Close(); err != nil {
		t.Errorf("the second Close = %v, want nil", err)
	}
	s.wantRefused(s.ctx, "after Close")
	if su.reopen != nil {
		again := su.again(t, s)
		again.want("a", "1")
		again.want("b", "")
	}
}

// wantRefused fails the test unless the store sends no call, and says so soon,
// with an error that also matches the causes.
func (s *subject) wantRefused(ctx context.Context, when string, causes ...any) {
	s.t.Helper()
	begin := time.Now()
	check := func(what string, err error) {
		s.t.Helper()
		calls.Error(s.t, what+" "+when, err, append(causes, grant.ErrNotSent)...)
	}
	_, err := s.Get(ctx, "a")
	check("Get", err)
	// One is not applied anyway.
	for _, c := range []struct{ key, old string }{{"a", "1"}, {"a", "x"}, {"b", ""}} {
		ok, err := s.CAS(ctx, c.key, []byte(c.old), []byte("2"))
		if ok {
			s.t.Errorf("CAS %s = true, want an error", when)
		}
		check("CAS", err)
	}
	check("List", s.List(ctx, "", func(string, []byte) bool {
		s.t.Errorf("List %s yields", when)
		return false
	}))
	if m, ok := grant.As[grant.MultiGetter](s.Store); ok {
		_, err := m.GetMany(ctx, []string{"a", "b"})
		check("GetMany", err)
	}
	if c, ok := grant.As[grant.Clock](s.Store); ok {
		_, _, err := c.Time(ctx)
		check("Time", err)
	}
	if took := time.Since(begin); took > soon {
		s.t.Errorf("calls %s took %v", when, took)
	}
}

// numberOf returns the number that a value begins with, 0 if it is absent.
func numberOf(value []byte) (n int64) {
	_, _ = fmt.Sscan(string(value), &n)
	return n
}

// testCloseMeanwhile closes the store during calls. All must return, and their
// results must agree with what is found when the store is opened again.
func testCloseMeanwhile(t *testing.T, su suite) {
	s := su.new(t)
	var acknowledged, unknown atomic.Int64
	var closed atomic.Bool
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for {
				late := closed.Load()
				now, err := s.Get(s.ctx, "counter")
				if late && err == nil {
					t.Error("Get succeeded after Close")
				}
				if late || err != nil {
					return
				}
				// What another worker writes is different: a Store that decides
				// by the stored bytes cannot know whether equal ones are its own.
				ok, err := s.CAS(s.ctx, "counter", now, fmt.Appendf(nil, "%d by %d", numberOf(now)+1, w))
				switch history.OutcomeOf(ok, err) {
				case history.Applied:
					acknowledged.Add(1)
				case history.Unknown:
					unknown.Add(1)
				}
				if err != nil {
					return
				}
				if w == 0 {
					_ = s.List(s.ctx, "", func(string, []byte) bool { return true })
				}
			}
		})
	}
	for begin := time.Now(); time.Since(begin) < busy/10 || acknowledged.Load() < 2 && time.Since(begin) < soon; {
		time.Sleep(50 * time.Microsecond)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close under calls = %v", err)
	}
	closed.Store(true)
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(soon):
		t.Fatalf("calls are under way %v after Close", soon)
	}
	s.wantRefused(s.ctx, "after Close")
	if su.reopen == nil {
		return
	}
	again := su.again(t, s)
	n := numberOf(must.Get(again.Get(again.ctx, "counter"))(t))
	if low, high := acknowledged.Load(), acknowledged.Load()+unknown.Load(); n < low || n > high {
		t.Errorf("the counter is %d after %d acknowledged increments and %d unknown ones", n, low, high-low)
	}
}

// testTwoAtOnce uses two stores over the same data by turns; testHistories uses
// them at once.
func testTwoAtOnce(t *testing.T, su suite) {
	if su.reopen == nil {
		t.Skip("the store's data cannot be opened again: reopen is nil")
	}
	one := su.new(t)
	two := su.again(t, one)
	both := []*subject{one, two}
	one.want("a", "")
	two.want("a", "")
	old := ""
	for i := range 20 { // each sees at once what the other did
		s, other := both[i%2], both[(i+1)%2]
		next := fmt.Sprint(i)
		s.cas("a", old, next)
		other.want("a", next)
		calls.Refused(t, other, "a", old, "x")
		if _, values := other.list(""); values["a"] != next {
			t.Fatalf("List yields \"a\" with %q, want %q: the other store's CAS has returned", values["a"], next)
		}
		old = next
	}
	must.Do(t, one.Close())
	two.cas("a", "19", "20")
	two.want("a", "20")
}
