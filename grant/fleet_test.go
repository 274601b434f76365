package grant

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

// size returns the number of processes, and the width of as many node IDs in
// bits.
func size() (processes, bits int) {
	if soak() {
		return 1 << 16, 16
	}
	if os.Getenv("FIRN_ALL") != "" {
		return 1 << 11, 11
	}
	if testing.Short() {
		return 1 << 8, 8
	}
	return 1 << 9, 9
}

// usualPlan is what a fleet experiences in these tests: all processes start at
// once, are replaced one after the other within five minutes, and all at once;
// the store is down for a third of the window, and for longer than the window.
func usualPlan(processes, bits int, window time.Duration) plan {
	return plan{
		Processes: processes, NodeBits: bits, Window: window, Store: etcd(),
		Steps: []step{
			{Name: "start", Starts: true, Settles: true},
			{Name: "settling", Lasts: window},
			{Name: "running", Lasts: 3 * window},
			{Name: "rollout", Lasts: 5 * time.Minute, Replaces: true, Settles: true},
			{Name: "restart", Replaces: true, Settles: true},
			{Name: "running on", Lasts: window},
			{Name: "short outage", Lasts: window / 3, Outage: true},
			{Name: "after the short one", Lasts: window, Settles: true},
			{Name: "long outage", Lasts: window + window/4, Outage: true},
			{Name: "after the long one", Lasts: window, Settles: true},
		},
	}
}

// runFleet runs a plan, and fails if an ID was made twice.
func runFleet(t *testing.T, what string, p plan) map[string]*stepReport {
	t.Helper()
	began := time.Now()
	w := newFleet(p)
	steps := make(map[string]*stepReport)
	name := fmt.Sprintf("fleet of %d, %s", p.Processes, what)
	for _, s := range p.Steps {
		r := w.do(s)
		if steps[s.Name] = r; w.without > 0 && !s.Outage {
			t.Errorf("%s: %d processes have no IDs at its end", s.Name, w.without)
		}
	}
	for _, s := range p.Steps { // the time until all had IDs is known now
		slices.Sort(steps[s.Name].Waits)
		t.Logf("report: %s: %v", name, steps[s.Name])
	}
	t.Logf("report: %s: %d IDs checked, %d node IDs acquired, %d renewals; it took %v",
		name, len(w.ids), w.acquired, w.renewed, time.Since(began).Round(time.Millisecond))
	slices.Sort(w.ids)
	if unique := slices.Compact(slices.Clone(w.ids)); len(unique) < len(w.ids) {
		t.Errorf("%d IDs were made twice", len(w.ids)-len(unique))
	}
	if w.Violation != "" {
		t.Error(w.Violation)
	}
	if w.alarms != 0 {
		t.Errorf("%d alarms, and nothing happened that asks for one", w.alarms)
	}
	return steps
}

// TestFleet verifies the statements of docs/scale.md about fleets. There are
// twice as many node IDs as processes.
func TestFleet(t *testing.T) {
	processes, bits := size()
	t.Run("100 servers", func(t *testing.T) { testFleet(t, usualPlan(100, 10, time.Minute)) })
	t.Run("window of 60 s", func(t *testing.T) { testFleet(t, usualPlan(processes, bits+1, time.Minute)) })
	if soak() {
		t.Run("window of 10 min", func(t *testing.T) { testFleet(t, usualPlan(processes, bits+1, 10*time.Minute)) })
	}
}

// TestKubernetesFleet is a thousand processes with a Kubernetes API server,
// with its default window and with that of other stores. There are twice as
// many node IDs.
func TestKubernetesFleet(t *testing.T) {
	windows := []time.Duration{time.Minute}
	if soak() {
		windows = append(windows, 10*time.Minute) // ten times as long
	}
	for _, window := range windows {
		t.Run(fmt.Sprint("window of ", window), func(t *testing.T) {
			p := usualPlan(1000, 11, window)
			p.Store = kubernetes()
			testFleet(t, p)
		})
	}
}

func testFleet(t *testing.T, p plan) {
	steps := runFleet(t, fmt.Sprintf("%d numbers, window of %v", 1<<p.NodeBits, p.Window), p)

	// 3N/W writes. A read of the lineage comes with each, and with each read of
	// the configuration, of which there is one in 15 to 20 seconds.
	n := float64(p.Processes)
	want := 3 * n / p.Window.Seconds()
	if s := steps["running"]; math.Abs(s.Writes.Mean/want-1) > 0.05 || s.Reads.Mean < want+n/20 || s.Reads.Mean > want+2*n/15 || len(s.Waits) > 0 {
		t.Errorf("running: %v; want %.0f writes and %.0f to %.0f reads in a second", s, want, want+n/20, want+2*n/15)
	}
	// Replaced processes wait for some round trips, and few claims are refused.
	if s := steps["rollout"]; s.Wait(0.99) > time.Second || s.Lists > 0 || s.Refused > p.Processes/100 {
		t.Errorf("%v; want IDs within a second, and no lists", s)
	}
	// All have at least 60 % of a window when an outage begins, except those
	// that have just started to renew.
	if s := steps["short outage"]; len(s.Waits) > 0 {
		t.Errorf("%d processes stood without IDs", len(s.Waits))
	}
	if s := steps["long outage"]; len(s.Waits) != p.Processes {
		t.Errorf("%d processes stood without IDs in an outage that is longer than the window, want all", len(s.Waits))
	}
	// The attempts of a process are at least half of the longest wait apart, so
	// the peak is bounded; it is also bounded by the capacity of the store.
	most := min(float64(p.Processes)/2.5+2*want, 1/p.Store.Write.Seconds())
	for _, name := range []string{"after the short one", "after the long one"} {
		if s := steps[name]; s.Writes.Peak > most {
			t.Errorf("%v: want at most %.0f writes in a second", s, most)
		}
	}
}

// A plan is what happens to a fleet.
type plan struct {
	Processes int
	NodeBits  int // of the layout, so there are 1<<NodeBits node IDs
	Window    time.Duration
	Store     pace
	Steps     []step
}

// A step is a part of a plan.
type step struct {
	Name     string
	Lasts    time.Duration
	Starts   bool // all processes start
	Replaces bool // every process is replaced within Lasts: 2 % crash, and the others give their node ID back
	Outage   bool // the store refuses all requests
	Settles  bool // and then the step lasts until all processes have IDs, or an hour
}

// A pace is the speed of the simulated store, which does one thing at a time.
type pace struct {
	Way   time.Duration // of a request, and of its answer: half to three halves of this, at random
	Read  time.Duration // a read of any number of keys
	Key   time.Duration // each key of a read or a list, in addition
	Write time.Duration // a compare-and-swap, applied or not
}

// etcd is roughly the pace of an etcd with three members on two shared cores;
// see docs/scale.md.
func etcd() pace {
	return pace{
		Way: 250 * time.Microsecond, Read: 60 * time.Microsecond, Key: time.Microsecond, Write: 120 * time.Microsecond,
	}
}

// kubernetes is roughly the pace of an API server and its etcd on two shared
// cores, where each key is a request, and a compare-and-swap two; see
// docs/scale.md.
func kubernetes() pace {
	return pace{
		Way: 500 * time.Microsecond, Read: 350 * time.Microsecond, Key: 350 * time.Microsecond, Write: 1100 * time.Microsecond,
	}
}

// A stepReport is the result of one step.
type stepReport struct {
	Name    string
	Lasted  time.Duration
	All     time.Duration // from its beginning until all had IDs, for the last time; 0 if none ever lacked them
	Reads   rate
	Writes  rate
	Refused int           // compare-and-swaps that were not applied
	Lists   int           // reads of all records
	Missed  int           // requests that the store refused because it was down
	Late    int           // requests whose turn or answer came after they were abandoned
	Queue   time.Duration // the longest wait of a request for its turn

	// Processes whose time without IDs began in this step: from the start of a
	// process, or from the end of its window, to its next ID.
	Waits       []time.Duration // in ascending order, in the end
	WithoutMost int             // at the same time
}

// A rate is requests per second of virtual time.
type rate struct{ Mean, Peak float64 }

// Wait returns the wait that a part of the waits do not exceed: 0.5 is the
// median.
func (r *stepReport) Wait(part float64) time.Duration {
	if len(r.Waits) == 0 {
		return 0
	}
	return r.Waits[min(len(r.Waits)-1, int(part*float64(len(r.Waits))))].Round(100 * time.Microsecond)
}

// String returns the report as a line.
func (r *stepReport) String() string {
	text := fmt.Sprintf("%s, %v: reads %.0f/s, at most %.0f/s; writes %.0f/s, at most %.0f/s; %d refused; %d lists",
		r.Name, r.Lasted.Round(100*time.Millisecond), r.Reads.Mean, r.Reads.Peak, r.Writes.Mean, r.Writes.Peak, r.Refused, r.Lists)
	if r.Missed+r.Late > 0 {
		text += fmt.Sprintf("; %d requests not answered, %d answered too late", r.Missed, r.Late)
	}
	if r.Queue > time.Second {
		text += fmt.Sprintf("; a request waited %v for its turn", r.Queue.Round(100*time.Millisecond))
	}
	if r.All > 0 {
		text += fmt.Sprintf("; all had IDs after %v", r.All.Round(100*time.Microsecond))
	}
	if len(r.Waits) > 0 {
		text += fmt.Sprintf("; %d stood without IDs, %d at once, for %v (p50), %v (p99), %v (most)",
			len(r.Waits), r.WithoutMost, r.Wait(0.5), r.Wait(0.99), r.Wait(1))
	}
	return text
}
