package grant_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

// TestHandOver: SetNodes returns when every clock has passed whatever was
// granted of the node IDs that it gives away, or says that this takes too long.
func TestHandOver(t *testing.T) {
	const (
		early   = -1
		unknown = -2
		year    = 365 * 24 * time.Hour
	)
	record := func(state, owner string, until, written time.Duration) func(t *testing.T, s grant.Store) {
		return func(t *testing.T, s grant.Store) {
			faultstore.Put(t, s, "v1/s/n/00001", node(state, owner, time.Now().Add(until), time.Now().Add(written)))
		}
	}
	for _, row := range []struct {
		name    string
		prepare func(t *testing.T, s grant.Store)
		want    time.Duration
	}{
		{"never used", func(*testing.T, grant.Store) {}, 0},
		{"free, passed by all clocks", record("free", "o", -10*time.Second, -time.Minute), 0},
		{"free, passed by this clock", record("free", "o", -4*time.Second, -time.Minute), 6 * time.Second},
		{"free, MaxAhead ahead", record("free", "o", 15*time.Second, 0), 25 * time.Second},
		{"held by a dead process", record("held", "o", 40*time.Second, -time.Second), 50 * time.Second},
		{"held, ended by this clock", record("held", "o", -4*time.Second, -time.Minute), 6 * time.Second},
		{"closing", record("closing", "o", 40*time.Second, -time.Second), 50 * time.Second},
		{"fenced a while ago", record("free", "", 20*time.Second, -time.Hour), 30 * time.Second},
		{"taken away just now", record("free", "", -time.Hour, 0), (15 + 60 + 10) * time.Second},
		{"fenced just now", func(t *testing.T, s grant.Store) {
			record("held", "o", 20*time.Second, 0)(t, s)
			must.Get(grant.Fence(t.Context(), s, "s", &grant.FenceOptions{LongestWindow: 30 * time.Second}))(t)
		}, early},
		{"a clock far ahead", record("free", "o", year, year), early},
		{"the same, not given back", record("held", "o", year, year), early},
		{"repaired", func(t *testing.T, s grant.Store) {
			faultstore.Put(t, s, "v1/s/n/00001", fmt.Sprintf(`{"v":3,"nonce":"n","owner":"","until":%d,"wall":%[1]d,"state":"free","host":"h","spoiled":[%d,%d]}`,
				time.Now().Add(-time.Hour).UnixMilli(), time.Now().Add(5*time.Second).UnixMilli(), time.Now().Add(50*time.Second).UnixMilli()))
		}, 60 * time.Second},
		{"damaged", func(t *testing.T, s grant.Store) { faultstore.Put(t, s, "v1/s/n/00001", "{") }, unknown},
		{"damaged, beside one that ends late", func(t *testing.T, s grant.Store) {
			faultstore.Put(t, s, "v1/s/n/00001", node("free", "o", time.Now().Add(year), time.Now()))
			faultstore.Put(t, s, "v1/s/n/00004", "{")
		}, unknown},
		{"inside of the range", func(t *testing.T, s grant.Store) {
			faultstore.Put(t, s, "v1/s/n/00002", node("held", "o", time.Now().Add(year), time.Now()))
		}, 0},
		{"damaged inside of the range", func(t *testing.T, s grant.Store) { faultstore.Put(t, s, "v1/s/n/00002", "{") }, 0},
		{"of another layout", func(t *testing.T, s grant.Store) {
			faultstore.Put(t, s, "v1/s/n/001", node("free", "o", time.Now().Add(year), time.Now()))
		}, 0},
		{"damaged, of another layout", func(t *testing.T, s grant.Store) { faultstore.Put(t, s, "v1/s/n/001", "{") }, (15 + 60 + 10) * time.Second},
		{"without a record, in a store that was fenced", func(t *testing.T, s grant.Store) {
			must.Get(grant.Fence(t.Context(), s, "s", &grant.FenceOptions{
				Now: func() time.Time { return time.Now().Add(-95 * time.Second) }, LongestWindow: 30 * time.Second,
			}))(t)
		}, 60 * time.Second}, // the floor is MaxAhead, two windows and 10 s after the fence
		{"without a record, before the floor of the creation", func(t *testing.T, s grant.Store) {
			must.Get(grant.Destroy(t.Context(), s, "s", nil))(t)
			c := config("hazelcast,epoch=0")
			must.Get(grant.Create(t.Context(), s, "s", c, &grant.CreateOptions{Floor: time.Now().Add(20 * time.Second)}))(t)
		}, 30 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(memstore.Store)
				c := config("hazelcast,epoch=0")
				c.Window = 60 * time.Second // the longest
				create(t, s, "s", c, time.Now().Add(-48*time.Hour))
				must.Get(grant.SetWindow(t.Context(), s, "s", 30*time.Second))(t)
				row.prepare(t, s)
				began := time.Now()
				info, err := grant.SetNodes(t.Context(), s, "s", &grant.NodeRange{Lo: 2, Hi: 3}, nil)
				took := time.Since(began)
				switch {
				case info.Config.Nodes.String() != "2..3":
					t.Errorf("the range is %v", info.Config.Nodes)
				case row.want == early:
					if !errors.Is(err, grant.ErrEarly) || took != 0 {
						t.Errorf("%v after %v, want ErrEarly at once", err, took)
					}
				case row.want == unknown:
					if !errors.Is(err, grant.ErrDamaged) || took != 0 {
						t.Errorf("%v after %v, want ErrDamaged at once", err, took)
					}
				case err != nil || took < row.want || took > row.want+time.Second:
					t.Errorf("it returned %v after %v, want %v", err, took, row.want)
				}
				for number, n := range nodes(t, s, "s") {
					if n.Held && !n.Closing && number != 2 {
						t.Errorf("node %d can be renewed", number)
					}
				}
				began = time.Now()
				if _, err := grant.SetNodes(t.Context(), s, "s", nil, nil); err != nil || time.Since(began) != 0 {
					t.Errorf("all again: %v after %v", err, time.Since(began))
				}
				if _, err := grant.SetNodes(t.Context(), s, "s", &grant.NodeRange{Hi: 1 << 20}, nil); err == nil {
					t.Error("a range beyond the layout's is taken")
				}
			})
		})
	}
}

// TestHandOverToAStore: a store that gets a node ID of another one makes none
// of its IDs, even if its clock is behind.
func TestHandOverToAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const layout = "bits=time:41.node:1.seq:4,epoch=0"
		one, two := new(memstore.Store), new(memstore.Store)
		create(t, one, "s", config(layout), time.Now())
		a := &member{layout: firn.MustParseLayout(layout)}
		a.Keeper = grant.NewKeeper(one, "s", nil, a, nil)
		hold(t, a.Keeper)
		status, _ := a.Status()
		must.Do(t, a.g.Fill(t.Context(), make([]firn.ID, 16*2000)))
		used := a.g.Used()
		if lead := time.Until(used); lead < 900*time.Millisecond {
			t.Fatalf("the last ID is %v ahead of the clock", lead)
		}
		kept := &grant.NodeRange{Lo: 1 - status.Node, Hi: 1 - status.Node}
		must.Get(grant.SetNodes(t.Context(), one, "s", kept, nil))(t)
		c := config(layout)
		c.Nodes = &grant.NodeRange{Lo: status.Node, Hi: status.Node}
		behind := func() time.Time { return time.Now().Add(-10 * time.Second) }
		create(t, two, "s", c, behind())
		b := &member{layout: a.layout}
		b.Keeper = grant.NewKeeper(two, "s", nil, b, &grant.MemberOptions{Now: behind})
		hold(t, b.Keeper)
		if got, _ := b.Status(); got.Node != status.Node || b.from.Before(used) {
			t.Errorf("node %d begins at %v in the other store; IDs of node %d reach up to %v here", got.Node, b.from, status.Node, used)
		}
		must.Do(t, errors.Join(a.Close(t.Context()), b.Close(t.Context())))
	})
}
