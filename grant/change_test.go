package grant_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
)

// TestLastChange: after each operation, the record says which it was, who did
// it and when. Repeating an operation that changes nothing replaces nothing,
// and neither does continuing one.
func TestLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, there := new(memstore.Store), new(memstore.Store)
		clock := now
		blocked := strings.Replace(node("held", "o", now.AddDate(1, 0, 0), now.AddDate(1, 0, 0)), `}`,
			fmt.Sprintf(`,"gap":[%d,%d]}`, now.UnixMilli(), now.AddDate(1, 0, -1).UnixMilli()), 1)
		var want grant.Change
		// A word with "again" changes nothing. A detach that is left changes
		// it, and continuing that does not.
		for i, words := range []string{
			"create", "create again", "window", "window again", "nodes", "nodes again", "repair", "repair again",
			"fence", "detach, left", "detach again", "attach", "attach again", "move",
			"destroy", "destroy again", "purge", "purge again", "create",
		} {
			what, again := strings.CutSuffix(words, " again")
			what, left := strings.CutSuffix(what, ", left")
			var wantErr error
			switch words {
			case "repair":
				faultstore.Put(t, s, "v1/s/n/0007", blocked)
			case "detach, left":
				faultstore.Put(t, s, "v1/s/n/0008", node("held", "o", now.Add(time.Minute), now))
				wantErr = context.DeadlineExceeded
			case "detach again":
				clock = now.Add(time.Hour)
			}
			time.Sleep(time.Minute)
			by := fmt.Sprint("operator-", i)
			if !again {
				want = grant.Change{What: what, By: by, At: time.Now().UTC()}
			}
			lasts := time.Hour
			if left {
				lasts = time.Second
			}
			ctx, cancel := context.WithTimeout(grant.WithOperator(t.Context(), by), lasts)
			var err error
			if what == "move" {
				from, to := grant.Place{Store: s, URL: "dir:/a"}, grant.Place{Store: there, URL: "dir:/b"}
				s, there = there, s
				_, err = grant.Move(ctx, from, to, "s", at(clock))
			} else {
				_, err = run(ctx, s, what, "s", clock)
			}
			cancel()
			if !errors.Is(err, wantErr) {
				t.Fatalf("%d, %s: %v, want %v", i, words, err, wantErr)
			}
			for _, s := range []*memstore.Store{s, there} {
				if info, err := grant.Lookup(t.Context(), s, "s"); err == nil && info.LastChange != want && (s != there || what == "move") {
					t.Errorf("%d, %s: the last change is %+v, want %+v", i, words, info.LastChange, want)
				}
			}
		}
		// Names of any text are cut, so that the record can be written and
		// read.
		for by, want := range map[string]string{strings.Repeat("ä", 40): strings.Repeat("ä", 32), "\xff!": "?!"} {
			info, err := grant.SetWindow(grant.WithOperator(t.Context(), by), s, "s", time.Duration(100+len(by))*time.Second)
			if err == nil {
				info, err = grant.Lookup(t.Context(), s, "s")
			}
			if err != nil || info.LastChange.By != want {
				t.Errorf("by %q: %q, %v, want %q", by, info.LastChange.By, err, want)
			}
		}
	})
}
