package grant_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
)

// now is the clock of tests in which the time does not matter.
var now = time.UnixMilli(1_795_132_800_000).UTC()

func createdAt(t time.Time) *grant.CreateOptions {
	return &grant.CreateOptions{Now: func() time.Time { return t }}
}

func at(t time.Time) *grant.WaitOptions {
	return &grant.WaitOptions{Now: func() time.Time { return t }}
}

// put overwrites a value.
func put(t *testing.T, s grant.Store, key, value string) {
	t.Helper()
	old := must.Get(s.Get(t.Context(), key))(t)
	if ok, err := s.CAS(t.Context(), key, old, []byte(value)); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// node returns a record of a node ID.
func node(state, owner string, until, wall time.Time) string {
	return fmt.Sprintf(`{"v":3,"nonce":"b7e2905d1c4f86a3370e1d92c85fa6b4","owner":%q,"until":%d,"wall":%d,"state":%q,"host":"h"}`,
		owner, until.UnixMilli(), wall.UnixMilli(), state)
}

// nodes returns the records of all node IDs of a sequencer.
func nodes(t *testing.T, s grant.Store, name string) map[uint64]grant.NodeInfo {
	t.Helper()
	m := make(map[uint64]grant.NodeInfo)
	must.Do(t, grant.Nodes(t.Context(), s, name, func(n grant.NodeInfo, err error) bool {
		if err == nil {
			m[n.Node] = n
		}
		return true
	}))
	return m
}

// An operation is an operation on a whole sequencer, with its results.
type operation struct {
	name string
	do   func(ctx context.Context, s grant.Store) error
	done func(t *testing.T, s grant.Store)
}

// operations returns all of them, for the sequencer "s" of populate.
func operations() []operation {
	state := func(want grant.State) func(*testing.T, grant.Store) {
		return func(t *testing.T, s grant.Store) {
			t.Helper()
			if info, err := grant.Lookup(t.Context(), s, "s"); err != nil || info.State != want {
				t.Errorf("it is %v, %v, want %v", info.State, err, want)
			}
			for number, n := range nodes(t, s, "s") {
				if want >= grant.Detached && n.Held && !n.Closing {
					t.Errorf("node %d is held, and its owner can extend it", number)
				}
			}
		}
	}
	admin := func(want grant.State, do func(context.Context, grant.Store) (grant.Info, error)) func(context.Context, grant.Store) error {
		return func(ctx context.Context, s grant.Store) error {
			info, err := do(ctx, s)
			if err == nil && info.State != want {
				return fmt.Errorf("no error, and %v", info.State)
			}
			return err
		}
	}
	attach := func(ctx context.Context, s grant.Store) (grant.Info, error) { return grant.Attach(ctx, s, "s") }
	detach := func(ctx context.Context, s grant.Store) (grant.Info, error) {
		return grant.Detach(ctx, s, "s", at(now))
	}
	destroy := func(ctx context.Context, s grant.Store) (grant.Info, error) {
		return grant.Destroy(ctx, s, "s", at(now))
	}
	purge := func(ctx context.Context, s grant.Store) (grant.Info, error) { return grant.Purge(ctx, s, "s") }
	create := func(ctx context.Context, s grant.Store) (grant.Info, error) {
		return grant.Create(ctx, s, "s", config("default"), createdAt(now))
	}
	return []operation{
		{"create", admin(grant.Attached, create), state(grant.Attached)},
		{"lookup", admin(grant.Attached, func(ctx context.Context, s grant.Store) (grant.Info, error) { return grant.Lookup(ctx, s, "s") }), state(grant.Attached)},
		{"sequencers", func(ctx context.Context, s grant.Store) error {
			return grant.Sequencers(ctx, s, func(grant.Info, error) bool { return true })
		}, state(grant.Attached)},
		{"nodes", func(ctx context.Context, s grant.Store) error {
			return grant.Nodes(ctx, s, "s", func(grant.NodeInfo, error) bool { return true })
		}, state(grant.Attached)},
		{"fence", func(ctx context.Context, s grant.Store) error {
			_, err := grant.Fence(ctx, s, "s", &grant.FenceOptions{Now: func() time.Time { return now }})
			return err
		}, func(t *testing.T, s grant.Store) {
			t.Helper()
			info, err := grant.Lookup(t.Context(), s, "s")
			if err != nil || info.Floor.Before(now.Add(70*time.Second)) {
				t.Errorf("the floor is %v, %v", info.Floor, err)
			}
			for number, n := range nodes(t, s, "s") {
				if n.Until.Before(info.Floor) || n.Held || n.Owner != "" {
					t.Errorf("node %d is %+v, and the floor %v", number, n, info.Floor)
				}
			}
		}},
		{"repair", func(ctx context.Context, s grant.Store) error {
			_, err := grant.Repair(ctx, s, "s", &grant.RepairOptions{Now: func() time.Time { return now }})
			return err
		}, func(t *testing.T, s grant.Store) {
			t.Helper()
			if n := nodes(t, s, "s")[7]; n.Until.After(now) || n.Held || n.Owner != "" {
				t.Errorf("node 7 is %+v, and was to be given back", n)
			}
		}},
		{"narrow", func(ctx context.Context, s grant.Store) error {
			_, err := grant.SetNodes(ctx, s, "s", &grant.NodeRange{Lo: 4, Hi: 7}, at(now.Add(3*time.Hour))) // the floor has passed, and 7 was repaired
			return err
		}, func(t *testing.T, s grant.Store) {
			t.Helper()
			if info, err := grant.Lookup(t.Context(), s, "s"); err != nil || info.State != grant.Attached || *info.Config.Nodes != (grant.NodeRange{Lo: 4, Hi: 7}) {
				t.Errorf("it is %+v, %v", info, err)
			}
			for number, n := range nodes(t, s, "s") {
				if number < 4 && n.Held && !n.Closing {
					t.Errorf("node %d is held, and its owner can extend it", number)
				}
			}
		}},
		{"widen", admin(grant.Attached, func(ctx context.Context, s grant.Store) (grant.Info, error) {
			return grant.SetNodes(ctx, s, "s", nil, nil)
		}), state(grant.Attached)},
		{"detach", admin(grant.Detached, detach), state(grant.Detached)},
		{"attach", admin(grant.Attached, attach), state(grant.Attached)},
		{"destroy", admin(grant.Destroyed, destroy), state(grant.Destroyed)},
		{"purge", admin(grant.Purged, purge), state(grant.Purged)},
		{"create again", admin(grant.Attached, create), state(grant.Attached)},
	}
}

// populate makes a sequencer "s" with node IDs of all kinds whose windows have
// ended, in the state that the operation requires.
func populate(t *testing.T, before []operation) *memstore.Store {
	t.Helper()
	s := new(memstore.Store)
	for _, op := range before {
		must.Do(t, op.do(t.Context(), s))
		if op.name == "create" || op.name == "fence" { // this frees all
			for number, state := range []string{"held", "closing", "free", "held"} {
				put(t, s, fmt.Sprintf("v1/s/n/%04d", number), node(state, "o", now.Add(-time.Hour), now.Add(-2*time.Hour)))
			}
		}
	}
	if n := len(before); n > 0 && before[n-1].name == "fence" {
		// A node ID of a process whose clock was a year ahead, for a repair.
		year := now.Add(365 * 24 * time.Hour)
		put(t, s, "v1/s/n/0007", fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%d,"state":"held","host":"h","gap":[%d,%d]}`,
			year.Add(time.Minute).UnixMilli(), year.UnixMilli(), now.UnixMilli(), year.UnixMilli()))
	}
	return s
}
