package grant_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
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

// run runs an operation, by its name, by a clock. The Info is zero if it has
// none.
func run(ctx context.Context, s grant.Store, what, name string, clock time.Time) (info grant.Info, err error) {
	o := at(clock)
	switch what {
	case "create":
		return grant.Create(ctx, s, name, config("default"), createdAt(clock))
	case "lookup":
		return grant.Lookup(ctx, s, name)
	case "sequencers":
		err = grant.Sequencers(ctx, s, func(grant.Info, error) bool { return true })
	case "list":
		err = grant.Nodes(ctx, s, name, func(grant.NodeInfo, error) bool { return true })
	case "fence":
		_, err = grant.Fence(ctx, s, name, &grant.FenceOptions{Now: o.Now, AnyClock: true, LongestWindow: time.Minute})
	case "repair":
		_, err = grant.Repair(ctx, s, name, &grant.RepairOptions{Now: o.Now})
	case "window":
		return grant.SetWindow(ctx, s, name, time.Minute)
	case "nodes":
		return grant.SetNodes(ctx, s, name, &grant.NodeRange{Lo: 4, Hi: 7}, o)
	case "all nodes":
		return grant.SetNodes(ctx, s, name, nil, o)
	case "detach":
		return grant.Detach(ctx, s, name, o)
	case "attach":
		return grant.Attach(ctx, s, name)
	case "destroy":
		return grant.Destroy(ctx, s, name, o)
	case "purge":
		return grant.Purge(ctx, s, name)
	default:
		panic("no operation " + what)
	}
	return info, err
}

// An operation is one on a whole sequencer, and the state to which it leads.
type operation struct {
	name  string
	state grant.State
}

// operations are all of them, in an order in which the sequencer "s" of
// populate allows them.
var operations = []operation{
	{"create", grant.Attached}, {"lookup", grant.Attached}, {"sequencers", grant.Attached}, {"list", grant.Attached},
	{"fence", grant.Attached}, {"repair", grant.Attached}, {"nodes", grant.Attached}, {"all nodes", grant.Attached},
	{"detach", grant.Detached}, {"attach", grant.Attached}, {"destroy", grant.Destroyed}, {"purge", grant.Purged},
	{"create", grant.Attached},
}

// do runs the operation.
func (op operation) do(ctx context.Context, s grant.Store) error {
	clock := now
	if op.name == "nodes" {
		clock = now.Add(3 * time.Hour) // the floor has passed, and node ID 7 was repaired
	}
	info, err := run(ctx, s, op.name, "s", clock)
	if err == nil && info.State != op.state && info.Name != "" {
		return fmt.Errorf("no error, and %v", info.State)
	}
	return err
}

// done checks the results of the operation.
func (op operation) done(t *testing.T, s grant.Store) {
	t.Helper()
	info, err := grant.Lookup(t.Context(), s, "s")
	if err != nil || info.State != op.state || op.name == "fence" && info.Floor.Before(now.Add(70*time.Second)) ||
		(info.Config.Nodes.String() == "4..7") != (op.name == "nodes") {
		t.Errorf("after %s it is %+v, %v", op.name, info, err)
	}
	for number, n := range nodes(t, s, "s") {
		switch {
		case (op.state >= grant.Detached || op.name == "nodes" && number < 4) && n.Held && !n.Closing:
			t.Errorf("node %d is held, and its owner can extend it", number)
		case op.name == "fence" && (n.Until.Before(info.Floor) || n.Held || n.Owner != ""),
			op.name == "repair" && number == 7 && (n.Until.After(now) || n.Held || n.Owner != ""):
			t.Errorf("after %s, node %d is %+v, and the floor %v", op.name, number, n, info.Floor)
		}
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
				faultstore.Put(t, s, fmt.Sprintf("v1/s/n/%04d", number), node(state, "o", now.Add(-time.Hour), now.Add(-2*time.Hour)))
			}
		}
	}
	if n := len(before); n > 0 && before[n-1].name == "fence" {
		// A node ID of a process whose clock was a year ahead, for a repair.
		year := now.Add(365 * 24 * time.Hour)
		faultstore.Put(t, s, "v1/s/n/0007", fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%d,"state":"held","host":"h","gap":[%d,%d]}`,
			year.Add(time.Minute).UnixMilli(), year.UnixMilli(), now.UnixMilli(), year.UnixMilli()))
	}
	return s
}
