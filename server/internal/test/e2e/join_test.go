//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/test/etcdtest"
	"github.com/firnid/firn/server/internal/test/servicetest"
	"github.com/firnid/firn/server/stores"
)

// TestEtcdJoin: a thousand members take their numbers at once, of hardly more
// than there are. With FIRN_SOAK, four
// thousand, and with numbers to spare too.
func TestEtcdJoin(t *testing.T) {
	c := etcdtest.Start(t)
	t.Run("1000 of 1024", func(t *testing.T) { join(t, c, 1000, firn.Default()) })
	if os.Getenv("FIRN_SOAK") == "" {
		return
	}
	for _, bits := range []int{12, 13, 14} {
		layout := firn.MustParseLayout(fmt.Sprintf("default,node-bits=%d,seq-bits=%d", bits, 22-bits))
		t.Run(fmt.Sprint("4000 of ", 1<<bits), func(t *testing.T) { join(t, c, 4000, layout) })
	}
}

func join(t *testing.T, c *etcdtest.Cluster, members int, layout firn.Layout) {
	const connections = 20
	var open [connections]grant.Store
	for i := range open {
		s, err := stores.Open(t.Context(), c.URL(fmt.Sprintf("join-%d-%d", members, layout.MaxNode()))+"?timeout=1m")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		open[i] = s
	}
	if _, err := grant.Create(t.Context(), open[0], "join", servicetest.Config(layout), nil); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	begin := make(chan struct{})
	var tries, refused, again atomic.Uint64
	var mu sync.Mutex
	numbers := make(map[uint64]int)
	var took []time.Duration
	ready := make(chan struct{}, members)
	opened := make([]*sequencer.Sequencer, members)
	for i := range members {
		all.Go(func() {
			ready <- struct{}{}
			<-begin
			start := time.Now()
			for opened[i] == nil {
				// Patient, so that a slow machine does not fail the test.
				q, err := sequencer.Open(t.Context(), open[i%connections], "join", &sequencer.Options{WaitForNode: true, Timeout: time.Minute})
				if errors.Is(err, sequencer.ErrUnavailable) {
					again.Add(1)
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				opened[i] = q
			}
			id, err := opened[i].Next(t.Context())
			lasted := time.Since(start)
			if err != nil {
				t.Error(err)
				return
			}
			p, err := layout.Decompose(id)
			if err != nil {
				t.Error(err)
				return
			}
			stats := opened[i].Stats().Keeper
			tries.Add(stats.Acquired + stats.Refused + stats.Unknown)
			refused.Add(stats.Refused)
			mu.Lock()
			defer mu.Unlock()
			numbers[p.Node]++
			took = append(took, lasted)
		})
	}
	for range members {
		<-ready
	}
	start := time.Now()
	close(begin)
	all.Wait()
	total := time.Since(start)
	if len(numbers) != members {
		t.Errorf("%d members have %d numbers", members, len(numbers))
	}
	slices.Sort(took)
	if len(took) > 0 {
		t.Logf("report: joining: %d members of %d numbers over an etcd of three processes: all have an ID after %v (median %v, slowest %v), with %d different numbers; %d tries, of which %d were refused; %d began again",
			members, layout.MaxNode()+1, total.Round(time.Millisecond), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond),
			len(numbers), tries.Load(), refused.Load(), again.Load())
	}
	for _, q := range opened {
		if q != nil {
			all.Go(func() { _ = q.Close(t.Context()) })
		}
	}
	all.Wait()
}
