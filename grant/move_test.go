package grant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

const moveNow int64 = 1_800_000_000_000

// movedNodes are what its records have: also a mark a year ahead, what is left
// of it after a repair, and a window that ended without being given back.
var movedNodes = []string{
	`"until":1700000000000,"wall":1699999999000,"state":"free","host":"h"`,
	`"until":1831536000000,"wall":1831535999000,"state":"free","host":"h","gap":[1700000000000,1831535999000]`,
	`"until":1700000000000,"wall":1699999999000,"state":"free","host":"h","spoiled":[1831535999000,1831536000000]`,
	`"until":1700000000000,"wall":1699999999000,"state":"held","host":"h"`,
}

// moveSource returns a store with a sequencer to be moved.
func moveSource(t *testing.T) *memstore.Store {
	t.Helper()
	s := new(memstore.Store)
	create(t, s, "s", config("default,epoch=0"), time.UnixMilli(moveNow))
	for node, fields := range movedNodes {
		faultstore.Put(t, s, fmt.Sprintf("v1/s/n/%04d", node), fmt.Sprintf(`{"v":3,"nonce":"n%d","owner":"o%d",%s}`, node, node, fields))
	}
	return s
}

func move(t *testing.T, from, to grant.Store) (grant.Info, error) {
	return moveTo(t, from, to, "etcd://b")
}

func moveTo(t *testing.T, from, to grant.Store, url string) (grant.Info, error) {
	t.Helper()
	return grant.Move(t.Context(), grant.Place{Store: from, URL: "dir:/a"}, grant.Place{Store: to, URL: url}, "s",
		&grant.WaitOptions{Now: func() time.Time { return time.UnixMilli(moveNow) }})
}

// checkMoved: the target has all that the source's records say, and the source
// is of no more use.
func checkMoved(t *testing.T, what string, from, to *memstore.Store) {
	t.Helper()
	there := keys(t, to)
	for node, want := range movedNodes {
		want = strings.Replace(want, "held", "free", 1)
		if got := there[fmt.Sprintf("v1/s/n/%04d", node)]; !strings.Contains(got, want) {
			t.Errorf("%s: node ID %d is %s there, want %s", what, node, got, want)
		}
	}
	info, err := grant.Lookup(t.Context(), to, "s")
	if err != nil || info.State != grant.Attached || info.MovedTo != "" {
		t.Errorf("%s: there it is %+v, %v", what, info, err)
	}
	info, err = grant.Lookup(t.Context(), from, "s")
	if err != nil || info.MovedTo != "etcd://b" {
		t.Errorf("%s: here it is %+v, %v", what, info, err)
	}
	for _, op := range []string{"attach", "create", "window", "nodes", "detach", "destroy", "purge"} {
		_, err := run(t.Context(), from, op, "s", time.UnixMilli(moveNow))
		if !errors.Is(err, grant.ErrMoved) || !strings.Contains(err.Error(), "moved to etcd://b") {
			t.Errorf("%s: %s here: %v, want ErrMoved with the target's URL", what, op, err)
		}
	}
	if after, err := grant.Lookup(t.Context(), from, "s"); err != nil || after != info {
		t.Errorf("%s: here it became %+v, %v, want no change", what, after, err)
	}
}

// TestMoveFaults: a move that ends at any request, with any result, leaves the
// sequencer usable in one store at most, and can be run again.
func TestMoveFaults(t *testing.T) { synctest.Test(t, testMoveFaults) }

func testMoveFaults(t *testing.T) {
	for fault := range faults {
		for side := range 2 {
			for request, done := 1, false; !done; request++ {
				from, to := moveSource(t), new(memstore.Store)
				faulty := [2]*faultstore.Store{{Store: from}, {Store: to}}
				faulty[side] = failsAt(faulty[side].Store, fault, request)
				what := fmt.Sprintf("fault %d of request %d of store %d", fault, request, side)
				if _, err := move(t, faulty[0], faulty[1]); err != nil && !errors.Is(err, errFault) {
					t.Fatalf("%s: %v", what, err)
				}
				done = faulty[side].Requests.Load() < int64(request)
				usable := 0
				for _, s := range []*memstore.Store{from, to} {
					if _, err := grant.Attach(t.Context(), faultstore.Copy(t, s), "s"); err == nil {
						usable++
					}
				}
				if usable > 1 {
					t.Errorf("%s: both stores can be attached", what)
				}
				if _, err := move(t, from, to); err != nil {
					t.Fatalf("%s, run again: %v", what, err)
				}
				checkMoved(t, what, from, to)
				before := keys(t, to)
				if _, err := move(t, from, to); err != nil || fmt.Sprint(keys(t, to)) != fmt.Sprint(before) {
					t.Errorf("%s: a move that is done: %v, and %v became %v", what, err, before, keys(t, to))
				}
			}
		}
	}
}

// TestMoveRefused: what could repeat IDs, or lose a mark, is refused, and
// nothing changes.
func TestMoveRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := time.UnixMilli(moveNow)
		few := config("default,epoch=0")
		few.Nodes = &grant.NodeRange{Hi: 7}
		for want, prepare := range map[string]func(from, to *memstore.Store){
			"layout":      func(_, to *memstore.Store) { create(t, to, "s", config("hazelcast"), clock) },
			"and 0..7 in": func(_, to *memstore.Store) { create(t, to, "s", few, clock) },
			"has members": func(_, to *memstore.Store) {
				create(t, to, "s", config("default,epoch=0"), clock)
				faultstore.Put(t, to, "v1/s/n/0009", node("held", "o", clock.Add(time.Minute), clock))
			},
			"damaged":         func(from, _ *memstore.Store) { faultstore.Put(t, from, "v1/s/n/0009", "{") },
			"moved to dir:/c": func(from, _ *memstore.Store) { must.Get(moveTo(t, from, new(memstore.Store), "dir:/c"))(t) },
			"same store":      nil,
		} {
			from, to := moveSource(t), new(memstore.Store)
			if prepare == nil {
				to = from
			} else {
				prepare(from, to)
			}
			before := fmt.Sprint(keys(t, from), keys(t, to))
			if _, err := move(t, from, to); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want an error with %q", err, want)
			}
			if after := fmt.Sprint(keys(t, from), keys(t, to)); after != before {
				t.Errorf("%s: %s became %s", want, before, after)
			}
		}
		if _, err := moveTo(t, moveSource(t), new(memstore.Store), "a b"); err == nil {
			t.Error("a URL with a space is taken")
		}
	})
}

// TestMoveMembers: members of three stores, one after the other and back again,
// never make an ID twice, even the one that goes on in the store that was left.
// Fence and Repair work there too.
func TestMoveMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		places := [3]grant.Place{{Store: new(memstore.Store), URL: "dir:/a"}, {Store: new(memstore.Store), URL: "dir:/b"}, {Store: new(memstore.Store), URL: "dir:/c"}}
		create(t, places[0].Store, "s", config("default,epoch=0"), time.Now())
		seen := make(map[firn.ID]bool)
		make := func(m *member) {
			for range 1000 {
				id := must.Get(m.g.Next(ctx))(t)
				if seen[id] {
					t.Fatalf("%v comes twice", id)
				}
				seen[id] = true
			}
		}
		for _, step := range [][2]int{{0, 1}, {1, 0}, {0, 1}, {1, 2}, {2, 0}, {0, 2}} {
			from, to := places[step[0]], places[step[1]]
			m := &member{layout: firn.MustParseLayout("default,epoch=0")}
			m.Keeper = grant.NewKeeper(from.Store, "s", nil, m, &grant.MemberOptions{Nodes: &grant.NodeRange{Lo: 7, Hi: 7}})
			hold(t, m.Keeper)
			make(m)
			must.Get(grant.Move(ctx, from, to, "s", nil))(t)
			if m.g != nil {
				if id, err := m.g.TryNext(); err == nil {
					t.Errorf("a member of the store that was left makes %v", id)
				}
			}
			must.Get(grant.Fence(ctx, from.Store, "s", &grant.FenceOptions{LongestWindow: time.Minute}))(t)
			must.Get(grant.Repair(ctx, from.Store, "s", nil))(t)
			must.Do(t, m.Wait(ctx, func(s grant.Status) bool { return s.Err != nil && strings.Contains(s.Err.Error(), "moved to "+to.URL) }))
			must.Do(t, m.Close(ctx))
		}
	})
}
