package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/stale"
	"github.com/firnid/firn/internal/test/calls"
)

// TestWarnings: a CAS that was applied with a warning has an unknown result,
// and a later one without a warning does not.
func TestWarnings(t *testing.T) {
	f := newFake()
	s := f.store(t)
	f.warned = []string{"of something before"}
	calls.CAS(t, s, "a", "", "1") // after a warning of another statement
	f.on(func(what string, apply func()) error {
		if what == "UPDATE" || what == "INSERT" {
			apply()
			f.set(func() { f.warned = []string{"canceling wait"} })
		}
		return nil
	})
	calls.Unknown(t, s, "a", "1", "2", "canceling wait")
	calls.Unknown(t, s, "b", "", "2", "canceling wait")
	calls.Unknown(t, s, "b", "", "2", "canceling wait") // refused, with a warning
	f.on(nil)
	calls.CAS(t, s, "a", "2", "3")
}

// TestTimeline: after a promoted server has been seen, the one that it replaced
// is no longer trusted, and no CAS there is known to be durable.
func TestTimeline(t *testing.T) {
	f := newFake()
	s := f.store(t)
	timeline := func(n int64) { f.set(func() { f.timeline = n }) }
	calls.CAS(t, s, "a", "", "1")
	timeline(3)
	calls.CAS(t, s, "a", "1", "2")
	timeline(2)
	value, err := s.Get(t.Context(), "a")
	if e, ok := errors.AsType[*stale.Error](err); !ok || string(value) != "2" || time.Since(e.Other) > time.Minute {
		t.Errorf("Get of a server that was replaced = %q, %v, want 2 with a stale.Error", value, err)
	}
	// Rows that it lacks say no more than those that it has.
	for _, key := range []string{"a", "absent"} {
		for what, err := range calls.Reads(t, s, key) {
			if what != "Time" {
				calls.Error(t, what+" of a server that was replaced", err, ErrReplica, "promoted")
			}
		}
	}
	calls.Unknown(t, s, "a", "2", "3", "promoted")
	calls.NotSent(t, s, "a", "other", "4", ErrReplica) // it refuses this one
	timeline(3)
	calls.Get(t, s, "a", "3")
}

// TestSettle: the result of a CAS is unknown if the server does not return its
// state afterwards.
func TestSettle(t *testing.T) {
	f := newFake()
	s := f.store(t)
	applied := false
	f.on(func(what string, apply func()) error {
		switch {
		case what == "INSERT":
			apply()
			applied = true
		case what == "SELECT" && applied:
			return errors.New("connection reset")
		}
		return nil
	})
	calls.Unknown(t, s, "a", "", "1", "connection reset")
}

// TestDangers: dangers are reported as long as they last, and do not prevent
// the use of the database. One that does is also an error of calls, at once.
func TestDangers(t *testing.T) {
	f := newFake()
	s := f.store(t)
	for _, step := range []struct {
		change func()
		want   string // "" for none
	}{
		{func() {}, ""},
		{func() { f.replicas = 1 }, "waits for none"},
		{func() { f.standbys = "*" }, ""},
		{func() { f.others = "pg_receivewal" }, "pg_receivewal may confirm a commit in place of a standby"},
		{func() { f.standbys, f.others = "", "" }, "synchronous_standby_names is empty now"},
		{func() {}, "synchronous_standby_names is empty now"},
		{func() { f.standbys = "*" }, ""},
		{func() { f.settings[0] = "off" }, "no node ID is acquired or renewed"},
		{func() { f.settings[0] = "on" }, ""},
	} {
		f.set(step.change)
		found, err := s.Dangers(t.Context())
		if err != nil || len(found) > 1 || !strings.Contains(strings.Join(found, ""), step.want) || (step.want == "") != (len(found) == 0) {
			t.Errorf("Dangers = %q, %v, want %q", found, err, step.want)
		}
		if _, err := s.Get(t.Context(), "a"); errors.Is(err, grant.ErrUnfit) != strings.Contains(step.want, "no node ID") {
			t.Errorf("with %q: Get = %v", step.want, err)
		}
	}
	f.fails(errors.New("away"))
	if found, err := s.Dangers(t.Context()); err == nil {
		t.Errorf("Dangers of a database that does not answer = %q", found)
	}
}

// TestGaleraAlone: settings with which a part of a Galera cluster continues
// alone are found in the text that contains all settings of the server.
func TestGaleraAlone(t *testing.T) {
	const options = "base_host = 127.0.0.1; pc.announce_timeout = PT3S; pc.ignore_quorum = %s; pc.ignore_sb = %s; pc.npvo = false; "
	for _, test := range []struct{ quorum, sb, want string }{
		{"false", "false", ""}, {"false", "true", "pc.ignore_sb"}, {"true", "false", "pc.ignore_quorum"}, {"0", "1", "pc.ignore_sb"}, {"no", "YES", "pc.ignore_sb"},
	} {
		got := ""
		if m := galeraAlone.FindStringSubmatch(fmt.Sprintf(options, test.quorum, test.sb)); m != nil {
			got = m[1]
		}
		if got != test.want {
			t.Errorf("%+v: found %q", test, got)
		}
	}
}
