package grant_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// TestSetWindow: the window changes in both directions, the longest one is
// remembered, and nothing else changes.
func TestSetWindow(t *testing.T) {
	ctx, s := t.Context(), new(memstore.Store)
	was, err := grant.Create(ctx, s, "s", config("default,epoch=0"), time.UnixMilli(moveNow))
	if err != nil {
		t.Fatal(err)
	}
	for _, window := range []time.Duration{2 * time.Minute, 2 * time.Second, 2 * time.Second} {
		want := was
		want.Config.Window, want.LongestWindow = window, 2*time.Minute
		got, err := grant.SetWindow(ctx, s, "s", window)
		if err != nil || got != want {
			t.Fatalf("a window of %v: %+v, %v, want %+v", window, got, err, want)
		}
		if got, err := grant.Lookup(ctx, s, "s"); err != nil || got != want {
			t.Fatalf("then it is %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := grant.SetWindow(ctx, s, "s", time.Second); err == nil || !strings.Contains(err.Error(), "at least 2s") {
		t.Errorf("too short a window: %v", err)
	}
	if _, err := grant.SetWindow(ctx, s, "none", time.Minute); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("no such sequencer: %v", err)
	}
	if _, err := grant.Destroy(ctx, s, "s", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := grant.SetWindow(ctx, s, "s", time.Minute); !errors.Is(err, grant.ErrDestroyed) {
		t.Errorf("a destroyed sequencer: %v", err)
	}
}
