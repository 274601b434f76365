package grant

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
)

// TestReadConfigLaw: how a member evaluates each readable configuration.
func TestReadConfigLaw(t *testing.T) {
	layout := firn.MustParseLayout("bits=time:48.node:4,unit=1ms,epoch=0")
	for _, tt := range []struct {
		name   string
		change func(c *Info)
		set    func(s *settings)
		err    error
		says   string
		thaws  bool // or freezes, if it is neither taken nor an error
	}{
		{name: "the same", change: func(c *Info) {}},
		{name: "another nonce", change: func(c *Info) { c.nonce = "x" }},
		{name: "a greater incarnation", change: func(c *Info) { c.Incarnation = 9 }},
		{name: "a smaller incarnation", change: func(c *Info) { c.Incarnation = 4 }, err: ErrStoreWentBack},
		{name: "a smaller incarnation with a higher floor", change: func(c *Info) { c.Incarnation, c.fenceFloor = 4, timeOf(101) }},
		{name: "a higher floor", change: func(c *Info) { c.fenceFloor = timeOf(101) }},
		{name: "a lower floor", change: func(c *Info) { c.fenceFloor = timeOf(99) }, err: ErrStoreWentBack},
		{name: "a lower floor with a greater incarnation", change: func(c *Info) { c.fenceFloor, c.Incarnation = timeOf(99), 9 }, err: ErrStoreWentBack},
		{name: "no floor any more", change: func(c *Info) { c.fenceFloor = time.Time{} }, err: ErrStoreWentBack},
		{name: "no floor but a later beginning", change: func(c *Info) { c.fenceFloor, c.createFloor = time.Time{}, timeOf(101) }, err: ErrStoreWentBack},
		{name: "a later beginning", change: func(c *Info) { c.createFloor = timeOf(101) }},
		{name: "another layout", change: func(c *Info) { c.Config.Layout = firn.MustParseLayout("default") }, err: ErrMismatch,
			says: fmt.Sprintf("grant: sequencer s has layout default now, not %s: it was created again", layout)},
		{name: "another window", change: func(c *Info) { c.Config.Window, c.LongestWindow = 9*time.Second, 9*time.Second }},
		{name: "the window that is wanted", change: func(c *Info) {}, set: func(s *settings) {
			s.config = &Config{Layout: layout, MaxAhead: 50 * time.Millisecond, Window: 6 * time.Second}
		}},
		{name: "another max-ahead than is wanted", change: func(c *Info) {}, set: func(s *settings) {
			s.config = &Config{Layout: layout, MaxAhead: 51 * time.Millisecond, Window: 7 * time.Second}
		}, err: ErrMismatch, says: "51ms"},
		{name: "detaching", change: func(c *Info) { c.State = Detaching }, err: ErrDetached, says: "s was detaching when last read"},
		{name: "destroyed", change: func(c *Info) { c.State = Destroyed }, err: ErrDestroyed, says: "s was destroyed when last read"},
		{name: "all of the node IDs", change: func(c *Info) {}, set: func(s *settings) { s.Nodes = &NodeRange{Lo: 0, Hi: 15} }},
		{name: "one node ID", change: func(c *Info) {}, set: func(s *settings) { s.Nodes = &NodeRange{Lo: 15, Hi: 15} }},
		{name: "a node ID too many", change: func(c *Info) {}, set: func(s *settings) { s.Nodes = &NodeRange{Lo: 15, Hi: 16} }, says: "15..16 do not fit"},
		{name: "no node IDs", change: func(c *Info) {}, set: func(s *settings) { s.Nodes = &NodeRange{Lo: 5, Hi: 4} }, says: "5..4: the first must not exceed the last"},
	} {
		r := newRig(t, 4, func(c *Info) { c.fenceFloor, c.Incarnation = timeOf(100), 5 })
		if tt.set != nil {
			tt.set(&r.m.settings)
		}
		c := r.m.seen.info
		tt.change(&c)
		c.Floor = c.laterFloor()
		ok := r.m.evaluateConfig(c.encode())
		err := r.m.status.Err
		switch {
		case tt.err == nil && tt.says == "":
			if !ok || r.m.freezing.frozen || string(r.m.seen.infoBytes) != string(c.encode()) || r.m.seen.info != c {
				t.Errorf("%s: %t, %v", tt.name, ok, err)
			}
			n := cmp.Or(r.m.settings.Nodes, &NodeRange{Lo: 0, Hi: 15})
			if lo, hi := r.m.seen.lowestNode, r.m.seen.highestNode; lo != n.Lo || hi != n.Hi {
				t.Errorf("%s: the node IDs %d..%d", tt.name, lo, hi)
			}
			if r.m.seen.floor != max(ms(c.fenceFloor), 100) || r.m.seen.incarnation != max(c.Incarnation, 5) {
				t.Errorf("%s: floor %d, incarnation %d", tt.name, r.m.seen.floor, r.m.seen.incarnation)
			}
		case ok || tt.err != nil && !errors.Is(err, tt.err) || err == nil || !strings.Contains(err.Error(), tt.says) || r.m.freezing.frozen != (tt.err == ErrStoreWentBack):
			t.Errorf("%s: %t, %v, frozen %t", tt.name, ok, err, r.m.freezing.frozen)
		}
	}

	// The first read may return any number of records; an empty result is not
	// an error of the store.
	m := newMachine(settings{name: "s", random: func() uint64 { return 0 }})
	if m.evaluateConfig(nil) || !errors.Is(m.status.Err, ErrNotFound) || m.freezing.frozen {
		t.Errorf("no configuration: %v, frozen %t", m.status.Err, m.freezing.frozen)
	}
	if m.evaluateConfig([]byte("{")) || !errors.Is(m.status.Err, ErrDamaged) || m.freezing.frozen {
		t.Errorf("a damaged one: %v, frozen %t", m.status.Err, m.freezing.frozen)
	}
	if _, ok := m.lastInfo(); ok {
		t.Error("it knows a configuration that it has not read")
	}
	r := newRig(t, 4, nil)
	if info, ok := r.m.lastInfo(); !ok || info != r.m.seen.info {
		t.Errorf("it knows %+v, %t", info, ok)
	}
	if r.m.evaluateConfig(nil) || !r.m.freezing.frozen || !errors.Is(r.m.status.Err, ErrStoreWentBack) {
		t.Errorf("a configuration that is gone: %v, frozen %t", r.m.status.Err, r.m.freezing.frozen)
	}
}

// TestEmptyIsNone: an empty value from a store means an absent one.
func TestEmptyIsNone(t *testing.T) {
	r := newRig(t, 4, nil)
	r.m.seen.infoBytes = nil
	r.tokens()
	r.step(event{Kind: eventJoin})
	r.answer(event{Values: [][]byte{{}}})
	if err := r.m.status.Err; !errors.Is(err, ErrNotFound) {
		t.Errorf("an empty configuration: %v", err)
	}
}

// TestHost: the host's name is truncated between characters, because records
// are limited.
func TestHost(t *testing.T) {
	for name, want := range map[string]int{"": 0, "h": 1, strings.Repeat("a", 64): 64, strings.Repeat("a", 65): 64, strings.Repeat("ü", 40): 64, "a" + strings.Repeat("ü", 40): 63, strings.Repeat("\x80", 70): 0} {
		m := newMachine(settings{host: name, random: func() uint64 { return 7 }})
		if got := m.settings.host; len(got) != want || !strings.HasPrefix(name, got) {
			t.Errorf("%q is cut to %q", name, got)
		}
		if m.owner != "00000000000000070000000000000007" {
			t.Errorf("owner %q", m.owner)
		}
	}
}
