package storehealth

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
)

// TestSilent: how long a store has been silent is what calls have shown, apart
// for reads and writes.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Answers
		fail := errors.New("away")
		call := func(what grant.Request, took time.Duration, err error) {
			_, end := a.Observe(t.Context(), what, "k")
			time.Sleep(took)
			end(false, err)
		}
		want := func(what string, reads, writes time.Duration) {
			t.Helper()
			if r, w, _ := a.Silent(); r != reads || w != writes {
				t.Errorf("%s: silent for %v and %v, want %v and %v", what, r, w, reads, writes)
			}
		}
		wantUp := func(want bool) {
			t.Helper()
			if up, _ := a.Up(); up != want {
				t.Errorf("up %t, want %t", up, want)
			}
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, end := a.Observe(cancelled, "get", "k")
		end(false, context.Canceled)
		want("no call but one that was given up", 0, 0)
		if _, known := a.Up(); known {
			t.Error("a call that was given up says how the store is")
		}
		call("get", time.Second, nil)
		want("one that was answered", 0, 0)
		call("list", 5*time.Second, fail)
		want("one that was not", 5*time.Second, 0)
		call("cas", 2*time.Second, fail)
		call("lineage", time.Second, fail)
		want("three", 8*time.Second, 2*time.Second)
		if _, _, why := a.Silent(); why != fail {
			t.Errorf("it refuses calls because of %v, want %v", why, fail)
		}
		call("get", time.Second, context.DeadlineExceeded)
		call("cas", time.Second, fmt.Errorf("no answer: %w", context.DeadlineExceeded))
		if _, _, why := a.Silent(); why != nil {
			t.Errorf("a silent store refuses calls because of %v", why)
		}
		call("get", 0, nil)
		want("it is there again, and may take writes", 0, 0)
		call("cas", 2*time.Second, fail)
		call("get", 0, nil)
		want("it takes none", 0, 2*time.Second)
		wantUp(false)
		_, end = a.Observe(t.Context(), "get many", "")
		time.Sleep(3 * time.Second)
		want("one is under way", 3*time.Second, 2*time.Second)
		call("get", 0, nil)
		want("another was answered meanwhile", 0, 2*time.Second)
		time.Sleep(2 * time.Second)
		want("none since", 2*time.Second, 2*time.Second)
		end(false, fail)
		want("it has failed", 2*time.Second, 2*time.Second)
		time.Sleep(silentFor)
		want("nothing is known any more of writes", 2*time.Second, 0)
		time.Sleep(time.Second)
		want("nor of reads", 0, 0)
		gone, cancel := context.WithCancel(t.Context())
		_, end = a.Observe(gone, "cas", "k")
		time.Sleep(time.Second)
		cancel()
		end(false, fail)
		want("one that was given up", 0, 0)
		call("cas", time.Second, nil)
		want("all well", 0, 0)
		call("get", time.Second, fail)
		call("cas", 0, nil)
		want("what it writes it can read", 0, 0)
		wantUp(true)
		call("get", time.Second, fail)
		time.Sleep(time.Minute)
		call("get", time.Second, fail)
		want("what failed long ago does not count", time.Second, 0)
	})
}
