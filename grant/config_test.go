package grant

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// windowStore is a store with a default window.
type windowStore struct{ Store }

func (windowStore) Pace() Pace { return Pace{Window: 42 * time.Second} }

// testConfig returns the configuration for a layout with a window.
func testConfig(layout string, window time.Duration) Config {
	c := DefaultConfig(nil, firn.MustParseLayout(layout), nil)
	c.Window = window
	return c
}

func ptr[T any](v T) *T { return &v }

// TestDefaultConfig: the defaults for settings that are not given.
func TestDefaultConfig(t *testing.T) {
	layout := firn.MustParseLayout("default")
	usual := layout.DefaultMaxAhead()
	for _, tt := range []struct {
		name     string
		store    Store
		maxAhead *time.Duration
		want     Config
	}{
		{"nothing", nil, nil, Config{Layout: layout, MaxAhead: usual, Window: 60 * time.Second}},
		{"a store", windowStore{}, nil, Config{Layout: layout, MaxAhead: usual, Window: 42 * time.Second}},
		{"max-ahead", windowStore{}, ptr(2 * time.Second), Config{Layout: layout, MaxAhead: 2 * time.Second, Window: 42 * time.Second}},
		{"a max-ahead that needs a longer window", windowStore{}, ptr(30 * time.Second), Config{Layout: layout, MaxAhead: 30 * time.Second, Window: 60 * time.Second}},
	} {
		got := DefaultConfig(tt.store, layout, tt.maxAhead)
		if err := got.Check(); got != tt.want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
	if err := testConfig("default", time.Millisecond).Check(); err == nil || !strings.Contains(err.Error(), "at least") {
		t.Errorf("a window of 1 ms: %v", err)
	}
	if err := (Config{Window: time.Minute}).Check(); err == nil || !strings.Contains(err.Error(), "no layout") {
		t.Errorf("no layout: %v", err)
	}
	// Every layout that can be generated has a usable configuration.
	for p := range firn.Presets() {
		c := DefaultConfig(nil, p.Layout, nil)
		if err := c.Check(); (err != nil) != p.Layout.ReadOnly() {
			t.Errorf("%s: %v", p.Name, err)
		}
		if want := p.Layout.DefaultMaxAhead(); c.MaxAhead != want {
			t.Errorf("MaxAhead of %s = %v, want %v", p.Name, c.MaxAhead, want)
		}
	}
}

// TestMinWindow: twice MaxAhead, four ticks and 100 ms, rounded up to
// milliseconds. Check accepts it and nothing shorter.
func TestMinWindow(t *testing.T) {
	for _, text := range []string{
		"bits=time:48.node:8,unit=1ms,epoch=0", "bits=time:48.node:8,unit=100ms,epoch=0", "bits=time:48.node:8,unit=10s,epoch=0",
		"bits=time:55.node:8,unit=100us,epoch=0", "bits=time:48.node:8,unit=30300us,epoch=0", "bits=time:48.node:8,unit=30125us,epoch=0",
	} {
		layout := must.Get(firn.ParseLayout(text))(t)
		for _, ahead := range []time.Duration{0, time.Millisecond, 49 * time.Millisecond, 51 * time.Millisecond, time.Hour, maxWindow / 4} {
			c := Config{Layout: layout, MaxAhead: ahead}
			want := 2 * ahead
			if ticks := 4 * layout.Unit(); ticks > want {
				want = ticks
			}
			if want < 100*time.Millisecond {
				want = 100 * time.Millisecond
			}
			for want%time.Millisecond != 0 {
				want += time.Microsecond
			}
			if got := c.minWindow(); got != want {
				t.Errorf("MinWindow of %s with max-ahead %v = %v, want %v", text, ahead, got, want)
			}
			c.Window = want
			if err := c.Check(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			if c.Window -= time.Millisecond; c.Check() == nil {
				t.Errorf("%+v is fine", c)
			}
		}
	}
}

// TestConfigLimits: the longest valid max-ahead and window, and the next longer
// ones.
func TestConfigLimits(t *testing.T) {
	layout := firn.MustParseLayout("default")
	for _, tt := range []struct {
		maxAhead, window time.Duration
		want             string
	}{
		{0, maxWindow, ""},
		{0, maxWindow + time.Millisecond, "the window"},
		{0, 100*time.Millisecond + 500*time.Microsecond, "whole milliseconds"},
		{0, 101 * time.Millisecond, ""},
		{maxWindow / 4, maxWindow, ""},
		{maxWindow/4 + time.Millisecond, maxWindow, "max-ahead"},
		{500 * time.Microsecond, maxWindow, "max-ahead"},
		{time.Millisecond, maxWindow, ""},
		{-time.Millisecond, maxWindow, "max-ahead"},
		{time.Second, 2*time.Second - time.Millisecond, "at least"},
	} {
		err := Config{Layout: layout, MaxAhead: tt.maxAhead, Window: tt.window}.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("max-ahead %v, window %v: %v, want %q", tt.maxAhead, tt.window, err, tt.want)
		}
	}
}

// TestErrors: each error matches its own sentinel and no other, and its text is
// complete.
func TestErrors(t *testing.T) {
	at := time.Date(2026, 11, 20, 1, 2, 3, 4_000_000, time.FixedZone("", 3600))
	sentinels := []error{ErrMismatch, ErrNodesExhausted, ErrClockBehind, ErrClockAhead}
	for _, tt := range []struct {
		err  error
		is   error
		says []string
	}{
		{mismatchError("s", "window", "2s", "1s"), ErrMismatch, []string{"sequencer s ", "window 2s, not 1s", "firn sequencer window s 1s"}},
		{mismatchError("s", "floor", "none", "2026-11-20T00:02:03.004Z"), ErrMismatch,
			[]string{"floor none, not 2026-11-20T00:02:03.004Z", "choose another name, or destroy it and create it again if it made none"}},
		{&NodesExhaustedError{sequencer: "s", nodes: NodeRange{Lo: 1, Hi: 9}}, ErrNodesExhausted, []string{"1..9", "sequencer s "}},
		{&NodesExhaustedError{sequencer: "s", nodes: NodeRange{Lo: 7, Hi: 7}, Free: at}, ErrNodesExhausted, []string{" 7 of sequencer s is held", "2026-11-20T00:02:03.004Z"}},
		{&NodesExhaustedError{sequencer: "s", nodes: NodeRange{Lo: 1, Hi: 9}, Free: at}, ErrNodesExhausted, []string{"1..9", "window ends at 2026-11-20T00:02:03.004Z"}},
		{&NodesExhaustedError{sequencer: "s", nodes: NodeRange{Lo: 1, Hi: 9}, Free: at, Ahead: true}, ErrNodesExhausted, []string{"1..9", "before 2026-11-20T00:02:03.004Z", "behind the marks"}},
		{&NodesExhaustedError{sequencer: "s", nodes: NodeRange{Lo: 1, Hi: 9}, Free: at, Ahead: true, Fenced: true}, ErrNodesExhausted, []string{"sequencer s was fenced", "at 2026-11-20T00:02:03.004Z"}},
		{movedError("s", "etcd://b"), ErrMoved, []string{"sequencer s was moved to etcd://b"}},
	} {
		for _, s := range sentinels {
			if got := errors.Is(tt.err, s); got != (s == tt.is) {
				t.Errorf("%v matches %v: %t", tt.err, s, got)
			}
		}
		for _, part := range tt.says {
			if !strings.Contains(tt.err.Error(), part) {
				t.Errorf("%q lacks %q", tt.err, part)
			}
		}
	}
}
