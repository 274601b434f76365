package sequencer_test

import (
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// TestStatsOfSealed: every ID is counted, even those of a generator that is
// sealed while callers take IDs from it, when its count is briefly unknown.
func TestStatsOfSealed(t *testing.T) {
	// With such short ticks, the clock advances between any two IDs.
	fine := firn.MustParseLayout("bits=time:54.node:4.seq:5,unit=1us,epoch=2020-01-01T00:00:00Z")
	q := open(t, new(memstore.Store), &sequencer.Config{Layout: fine, Now: time.Now})
	var made [3]uint64
	var callers sync.WaitGroup
	stop := make(chan struct{})
	for i := range made {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := q.TryNext(); err == nil {
					made[i]++
				} else {
					time.Sleep(10 * time.Microsecond)
				}
			}
		})
	}
	for range 60 {
		if err := q.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := q.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Microsecond)
	}
	close(stop)
	callers.Wait()
	closeIt(t, q)
	if got, want := q.Stats().IDs, made[0]+made[1]+made[2]; got != want {
		t.Errorf("%d IDs were counted, and %d made", got, want)
	}
}
