//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A fault does one thing to a store, and returns for how long at least and what
// undoes it.
type fault func() (least time.Duration, undo func())

// A chaos is what befalls a fleet and its store.
type chaos struct {
	t      *testing.T
	r      *rand.Rand
	f      *fleet
	faults map[string]fault
	least  time.Duration // a fault of the store lasts for this beyond its own, at most
	ready  func()        // waits for the store when a fault is undone; may be nil

	kinds  []string // of faults of the store and of workers
	counts map[string]int
	took   time.Duration
}

// step lets workers meet their own faults for some time.
func (c *chaos) step(least, more time.Duration) {
	for end := time.Now().Add(least + time.Duration(c.r.Int64N(int64(more)))); time.Now().Before(end); {
		c.f.step(c.r, c.counts)
		time.Sleep(50 * time.Millisecond)
	}
}

// mostRounds limits how often all faults happen while something is missing.
const mostRounds = 20

// run has all faults happen, by turns, for as long as the budget says and until
// what the test needs has happened.
func (c *chaos) run(budget time.Duration, happened func() bool) {
	c.counts = make(map[string]int)
	kinds := slices.Sorted(maps.Keys(c.faults))
	c.kinds = append(slices.Clone(kinds), workerKilled, workerStopped, workerPaused, workerEnded)
	begin := time.Now()
	enough := func() bool {
		return time.Since(begin) >= budget && happened() && !slices.ContainsFunc(c.kinds, func(kind string) bool { return c.counts[kind] == 0 })
	}
	for rounds := 0; !enough(); rounds++ {
		if rounds >= mostRounds && time.Since(begin) >= budget {
			break // report says what is missing
		}
		c.r.Shuffle(len(kinds), func(i, k int) { kinds[i], kinds[k] = kinds[k], kinds[i] })
		for _, kind := range kinds {
			if enough() {
				break
			}
			least, undo := c.faults[kind]()
			c.counts[kind]++
			c.step(least, c.least)
			undo()
			c.step(0, time.Second)
			if c.ready != nil {
				c.ready()
				c.step(0, time.Second)
			}
		}
	}
	c.took = time.Since(begin)
}

// report says what happened, and fails the test where an ID came twice, or a
// fault did not happen. allowed are parts of what workers may report.
func (c *chaos) report(store string, allowed ...string) {
	seen := c.f.check()
	_, twice := seen.ids.Check(c.t)
	var text []string
	sum := 0
	for _, kind := range c.kinds {
		text = append(text, fmt.Sprintf("%s %d", kind, c.counts[kind]))
		sum += c.counts[kind]
		if c.counts[kind] == 0 {
			c.t.Errorf("there was no fault %q", kind)
		}
	}
	c.t.Logf("report: %s under chaos for %v: %d processes at a time, %d in all, with a window of %v: %d IDs in %d runs, %d twice; %d numbers acquired, %d renewals, %d given back, %d lost, %d CAS unknown and %d refused",
		store, c.took.Round(time.Second), len(c.f.workers), c.f.started, c.f.task.Window, seen.ids.Len(), seen.runs, twice, seen.Acquired, seen.Renewed, seen.Released, seen.Lost, seen.Unknown, seen.Refused)
	c.t.Logf("report: %s under chaos: %d faults: %s", store, sum, strings.Join(text, ", "))
	if seen.ids.Len() == 0 || seen.Renewed == 0 {
		c.t.Errorf("%d IDs and %d renewals: nothing happened", seen.ids.Len(), seen.Renewed)
	}
	for _, line := range seen.errors {
		if !slices.ContainsFunc(allowed, func(part string) bool { return strings.Contains(line, part) }) {
			c.t.Errorf("a false alarm, or what must not be: %s", line)
		}
	}
}
