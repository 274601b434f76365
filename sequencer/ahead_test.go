package sequencer_test

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// A clockStore returns its time, which is ahead of the test's clock.
type clockStore struct {
	memstore.Store
	ahead time.Duration
}

func (s *clockStore) Time(context.Context) (time.Time, time.Duration, error) {
	return time.Now().Add(s.ahead), time.Millisecond, nil
}

// A timelessStore is a store that does not return its time.
type timelessStore struct{ grant.Store }

const year = 365 * 24 * time.Hour

func yearAhead() time.Time { return time.Now().Add(year) }

// TestClockAhead: a member whose clock is far ahead acquires no node ID. It
// knows that at once if the store returns its time and no other member may
// agree with the member's clock; otherwise it watches the others first.
func TestClockAhead(t *testing.T) {
	const window = time.Minute
	nodes := &grant.Range{Lo: 0, Hi: 7} // as many as are read
	config := &sequencer.Config{Layout: layout, Window: window, Nodes: nodes}
	for _, tt := range []struct {
		name     string
		ahead    time.Duration // the store's clock
		noClock  bool
		members  int // that make IDs
		now      func() time.Time
		allow    bool
		acquires bool
		within   time.Duration // the time for Open; 0 means at once
	}{
		{name: "alone", now: yearAhead},
		{name: "beside others", members: 3, now: yearAhead, within: window / 2},
		{name: "beside one, that may agree with it", members: 1, now: yearAhead},
		{name: "allowed", members: 3, now: yearAhead, allow: true, acquires: true},
		{name: "right, alone", acquires: true},
		{name: "right, beside others", members: 3, acquires: true},
		{name: "right, and the store's is a year behind", members: 3, ahead: -year, acquires: true, within: window / 2},
		{name: "right, and the store's is a year behind, alone", ahead: -year},
		{name: "beside others, without a clock of the store", noClock: true, members: 3, now: yearAhead, within: window / 2},
		{name: "alone, without a clock of the store", noClock: true, now: yearAhead, acquires: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clocked := new(clockStore)
				var s grant.Store = clocked
				if tt.noClock {
					s = timelessStore{clocked}
				}
				var users sync.WaitGroup
				defer users.Wait()
				using, stop := context.WithCancel(t.Context())
				defer stop()
				for range tt.members {
					q := open(t, s, config)
					users.Go(func() {
						for using.Err() == nil {
							_, _ = q.Next(using)
							time.Sleep(time.Second)
						}
						closeIt(t, q)
					})
				}
				time.Sleep(time.Second)
				clocked.ahead = tt.ahead
				before := records(t, s)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				q, err := sequencer.Open(ctx, s, "orders", &sequencer.Config{Layout: layout, Window: window, Nodes: nodes, Now: tt.now, AllowClockAhead: tt.allow})
				took := time.Since(began)
				if tt.acquires {
					if err != nil {
						t.Fatalf("Open = %v after %v, want a node ID", err, took)
					}
					closeIt(t, q)
				} else {
					if err == nil {
						closeIt(t, q)
					}
					var e *grant.ClockAheadError
					if !errors.As(err, &e) || !errors.Is(err, grant.ErrClockAhead) || e.Comparing || !regexp.MustCompile(`clock is 87\d\dh.* ahead of`).MatchString(err.Error()) {
						t.Errorf("Open = %#v after %v, want a *grant.ClockAheadError of about a year", err, took)
					}
					if n := records(t, s); n != before {
						t.Errorf("it made %d records", n-before)
					}
				}
				if took > tt.within {
					t.Errorf("Open took %v, want %v", took, tt.within)
				}
			})
		})
	}
}

// records returns how many node IDs have a record.
func records(t *testing.T, s grant.Store) (n int) {
	t.Helper()
	if err := grant.Nodes(t.Context(), s, "orders", func(grant.NodeInfo, error) bool { n++; return true }); err != nil {
		t.Fatal(err)
	}
	return n
}
