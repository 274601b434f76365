//go:build unix

package stores_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/test/distinct"
)

// draw takes IDs of a member until the context ends, and counts them.
func draw(ctx context.Context, t *testing.T, by string, q *sequencer.Sequencer, all *distinct.IDs[firn.ID]) (n int) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		id, err := q.Next(call)
		cancel()
		if err == nil {
			all.Add(t, by, id)
			n++
		}
		select { // a thousand a second will do
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	return n
}

// TestFailoverIDs: members of a PostgreSQL whose standby is down make no ID
// beyond what the standby has, whatever ends the waits of their renewals; so
// nothing repeats after a failover to it, even if the old primary comes back
// unaware. A member whose connections follow the failover continues.
// FIRN_SOAK=1h repeats this for an hour.
func TestFailoverIDs(t *testing.T) {
	t.Parallel()
	soak, err := time.ParseDuration(os.Getenv("FIRN_SOAK"))
	if err != nil && os.Getenv("FIRN_SOAK") != "" {
		soak = 10 * time.Minute
	}
	for begin, round := time.Now(), 1; !t.Failed() && (round == 1 || time.Since(begin) < soak); round++ {
		t.Run(fmt.Sprintf("round %d", round), failoverIDs)
	}
}

func failoverIDs(t *testing.T) {
	const window = 3 * time.Second
	primary, standby := synchronous(t)
	layout := firn.MustParseLayout("bits=time:44.node:8.seq:4,unit=1ms,epoch=0")
	ahead := 100 * time.Millisecond
	member := func(url string, node uint64) *sequencer.Sequencer {
		q, err := sequencer.Open(t.Context(), open(t, url), "orders", &sequencer.Options{
			Layout:      layout,
			MaxAhead:    &ahead,
			Window:      window,
			WaitForNode: true,
			Nodes:       &grant.NodeRange{Lo: node, Hi: node},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = q.Close(ctx)
		})
		return q
	}
	var all distinct.IDs[firn.ID]
	during := func(lasts time.Duration, by string, q *sequencer.Sequencer) int {
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		return draw(ctx, t, by, q, &all)
	}

	a := member(primary.URL("create=true"), 7)
	// Its connections lead to the new primary after the failover.
	p := proc.NewLink(t, primary.Address())
	c := member(strings.Replace(primary.URL(), primary.Address(), p.Address, 1), 8)
	if n := during(window, "a", a); n == 0 {
		t.Fatal("a makes no IDs")
	}
	// From here on nothing is replicated. Waits end by timeout, by an
	// administrator, and by a crash of the primary, after which the commits
	// that waited are visible.
	standby.Kill()
	alone := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var both sync.WaitGroup
		both.Go(func() { draw(ctx, t, "a", a, &all) })
		both.Go(func() { draw(ctx, t, "c", c, &all) })
		both.Wait()
	}()
	for i := 0; i < 50 || time.Since(alone) < window+3*time.Second; i++ {
		// The first are left alone, so that a timeout ends them.
		if i > 10 {
			primary.Exec(cuts[1+i%2].sql)
		}
		if i == 25 {
			primary.Kill()
			primary.Start()
			primary.Wait()
		}
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	<-ended
	if stats := a.Stats().Keeper; stats.Unknown == 0 {
		t.Errorf("no result was unknown: %+v", stats)
	}

	primary.Stop() // it is cut off
	p.Lead(standby.Address())
	standby.Start()
	standby.Wait()
	standby.Exec("SELECT pg_promote();\n")
	value := must.Get(open(t, standby.URL()).Get(t.Context(), "v1/orders/n/007"))(t)
	var record struct{ Until int64 }
	must.Do(t, json.Unmarshal(value, &record))
	known := time.UnixMilli(record.Until)
	if until := a.Status().Until; until.After(known) {
		t.Errorf("a has a window until %v, and the standby knows of one until %v", until, known)
	}
	b := member(standby.URL(), 7)
	if n := during(2*time.Second, "b", b); n == 0 {
		t.Error("b makes no IDs after the failover")
	}
	// It has read writes that are lost, but continues.
	must.Await(t, func() bool { return during(100*time.Millisecond, "c", c) > 0 }, "c makes IDs after the failover")
	if alarms := c.Stats().Keeper.Alarms; alarms != (grant.KeeperStats{}).Alarms {
		t.Errorf("c has %d alarms after the failover: %+v", alarms, c.Status())
	}
	primary.Continue() // it is back, and believes that it is the primary
	var both sync.WaitGroup
	both.Go(func() { during(window+time.Second, "a", a) })
	both.Go(func() { during(window+time.Second, "b", b) })
	both.Wait()
	if until := a.Status().Until; until.After(known) {
		t.Errorf("a has a window until %v from a primary that was replaced", until)
	}
	t.Logf("report: failover of postgres: %d IDs, none twice; %d results were unknown", all.Len(), a.Stats().Keeper.Unknown)
}
