package sqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/stale"
)

// unknown fails the test unless a CAS has an unknown result whose error
// contains the words.
func unknown(t *testing.T, ok bool, err error, words string) {
	t.Helper()
	if ok || err == nil || errors.Is(err, grant.ErrNotSent) || !strings.Contains(err.Error(), words) {
		t.Errorf("CAS = %v, %v, want an unknown result with %q", ok, err, words)
	}
}

// TestWarnings: a CAS that was applied with a warning has an unknown result,
// and a later one without a warning does not.
func TestWarnings(t *testing.T) {
	f := newFake()
	s := f.store(t)
	f.mu.Lock()
	f.warned = []string{"of something before"}
	f.mu.Unlock()
	if ok, err := s.CAS(t.Context(), "a", nil, []byte("1")); !ok || err != nil {
		t.Fatalf("CAS after a warning of another statement = %v, %v", ok, err)
	}
	f.mu.Lock()
	f.fault = func(what string, apply func()) error {
		if what == "UPDATE" || what == "INSERT" {
			apply()
			f.mu.Lock()
			defer f.mu.Unlock()
			f.warned = []string{"canceling wait"}
		}
		return nil
	}
	f.mu.Unlock()
	ok, err := s.CAS(t.Context(), "a", []byte("1"), []byte("2"))
	unknown(t, ok, err, "canceling wait")
	ok, err = s.CAS(t.Context(), "b", nil, []byte("2"))
	unknown(t, ok, err, "canceling wait")
	ok, err = s.CAS(t.Context(), "b", nil, []byte("2")) // refused, with a warning
	unknown(t, ok, err, "canceling wait")
	f.mu.Lock()
	f.fault = nil
	f.mu.Unlock()
	if ok, err := s.CAS(t.Context(), "a", []byte("2"), []byte("3")); !ok || err != nil {
		t.Errorf("CAS = %v, %v, want it applied: the warning was of another", ok, err)
	}
}

// TestTimeline: after a promoted server has been seen, the one that it replaced
// is no longer trusted, and no CAS there is known to be durable.
func TestTimeline(t *testing.T) {
	f := newFake()
	s := f.store(t)
	timeline := func(n int64) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.timeline = n
	}
	put(t, s, "a", "1")
	timeline(3)
	if ok, err := s.CAS(t.Context(), "a", []byte("1"), []byte("2")); !ok || err != nil {
		t.Fatalf("CAS at a server that was promoted = %v, %v", ok, err)
	}
	timeline(2)
	value, err := s.Get(t.Context(), "a")
	if e, ok := errors.AsType[*stale.Error](err); !ok || string(value) != "2" || !errors.Is(err, ErrReplica) || !strings.Contains(err.Error(), "promoted") || time.Since(e.Other) > time.Minute {
		t.Errorf("Get of a server that was replaced = %q, %v, want 2 with a stale.Error that is ErrReplica", value, err)
	}
	// Rows that it lacks say no more than those that it has.
	if values, err := s.GetMany(t.Context(), []string{"absent"}); !errors.Is(err, ErrReplica) {
		t.Errorf("GetMany of a server that was replaced = %q, %v, want ErrReplica", values, err)
	}
	if err := s.List(t.Context(), "", func(string, []byte) bool { return true }); !errors.Is(err, ErrReplica) {
		t.Errorf("List of a server that was replaced = %v, want ErrReplica", err)
	}
	if _, _, err := s.Lineage(t.Context()); !errors.Is(err, ErrReplica) {
		t.Errorf("Lineage of a server that was replaced = %v, want ErrReplica", err)
	}
	ok, err := s.CAS(t.Context(), "a", []byte("2"), []byte("3"))
	unknown(t, ok, err, "promoted")
	if ok, err := s.CAS(t.Context(), "a", []byte("other"), []byte("4")); ok || !errors.Is(err, ErrReplica) || !errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS that such a server refuses = %v, %v, want ErrReplica and ErrNotSent", ok, err)
	}
	timeline(3)
	if value, err := s.Get(t.Context(), "a"); string(value) != "3" || err != nil {
		t.Errorf("Get = %q, %v", value, err)
	}
}

// TestSettle: the result of a CAS is unknown if the server does not return its
// state afterwards.
func TestSettle(t *testing.T) {
	f := newFake()
	s := f.store(t)
	applied := false
	f.mu.Lock()
	f.fault = func(what string, apply func()) error {
		switch {
		case what == "INSERT":
			apply()
			applied = true
		case what == "SELECT" && applied:
			return errors.New("connection reset")
		}
		return nil
	}
	f.mu.Unlock()
	ok, err := s.CAS(t.Context(), "a", nil, []byte("1"))
	unknown(t, ok, err, "connection reset")
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
		f.mu.Lock()
		step.change()
		f.mu.Unlock()
		found, err := s.Dangers(t.Context())
		if err != nil || len(found) > 1 || !strings.Contains(strings.Join(found, ""), step.want) || (step.want == "") != (len(found) == 0) {
			t.Errorf("Dangers = %q, %v, want %q", found, err, step.want)
		}
		if _, err := s.Get(t.Context(), "a"); errors.Is(err, grant.ErrUnfit) != strings.Contains(step.want, "no node ID") {
			t.Errorf("with %q: Get = %v", step.want, err)
		}
	}
	f.mu.Lock()
	f.fault = func(string, func()) error { return errors.New("away") }
	f.mu.Unlock()
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
