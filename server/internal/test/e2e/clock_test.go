//go:build unix

package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/test/etcdtest"
	"github.com/firnid/firn/server/stores"
)

// TestEtcdClock: an etcd of three members says its time as long as one of them
// answers, and keeps a process out whose clock is a year ahead.
func TestEtcdClock(t *testing.T) {
	c := etcdtest.Start(t)
	s, err := stores.Open(t.Context(), c.URL("clock"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	near := func(what string) {
		t.Helper()
		before := time.Now()
		now, resolution, err := s.(grant.Clock).Time(t.Context())
		for range 20 { // it does not wait long, and this machine may be busy
			if err == nil {
				break
			}
			before = time.Now()
			now, resolution, err = s.(grant.Clock).Time(t.Context())
		}
		after := time.Now()
		if err != nil || now.Add(resolution).Before(before) || now.After(after) {
			t.Errorf("%s: Time = %v, %v, %v, want a time from %v to %v", what, now, resolution, err, before, after)
		}
		t.Logf("%s: Time took %v", what, after.Sub(before))
	}
	near("three members")
	join := func(now func() time.Time, allow bool) error {
		q, err := sequencer.Open(t.Context(), s, "orders", &sequencer.Config{Layout: firn.Default(), Now: now, AllowClockAhead: allow})
		if err == nil {
			err = errors.Join(q.Fill(t.Context(), make([]firn.ID, 10)), q.Close(t.Context()))
		}
		return err
	}
	ahead := func() time.Time { return time.Now().AddDate(1, 0, 0) }
	if err := join(ahead, false); !errors.Is(err, grant.ErrClockAhead) {
		t.Errorf("a clock that is a year ahead: %v, want ErrClockAhead", err)
	}
	if err := join(nil, false); err != nil {
		t.Errorf("a right clock: %v", err)
	}
	if err := join(ahead, true); err != nil {
		t.Errorf("a clock that may be a year ahead: %v", err)
	}
	report, err := grant.Repair(t.Context(), s, "orders", nil)
	if err != nil || len(report.Nodes) != 1 || len(report.Left) != 0 {
		t.Errorf("Repair = %+v, %v, want one node ID given back", report, err)
	}
	if err := join(nil, false); err != nil {
		t.Errorf("a right clock after the repair: %v", err)
	}

	c.Stop(0)
	near("one member stands still")
	c.Go(0)
	c.Kill(1)
	near("one member is down")
	c.Kill(2)
	near("two members are down: no majority is needed")
}
