package grant

import (
	"fmt"
	"math"
	"os"
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
		Seed: 1, Processes: processes, NodeBits: bits, Window: window, Skew: 20 * time.Millisecond, Store: etcd(),
		Steps: []step{
			{Name: "settling", Lasts: window},
			{Name: "running", Lasts: 3 * window},
			{Name: "rollout", Lasts: 5 * time.Minute, Replace: &rollout{Crash: 0.02, Gap: 2 * time.Second}, Settle: time.Hour},
			{Name: "restart", Replace: &rollout{Crash: 0.02, Gap: 2 * time.Second}, Settle: time.Hour},
			{Name: "running on", Lasts: window},
			{Name: "short outage", Lasts: window / 3, Outage: true},
			{Name: "after the short one", Lasts: window, Settle: time.Hour},
			{Name: "long outage", Lasts: window + window/4, Outage: true},
			{Name: "after the long one", Lasts: window, Settle: time.Hour},
		},
	}
}

// runFleet runs a plan, and fails after a violation.
func runFleet(t *testing.T, what string, p plan) map[string]stepReport {
	t.Helper()
	outage := make(map[string]bool)
	for _, s := range p.Steps {
		outage[s.Name] = s.Outage
	}
	steps := make(map[string]stepReport)
	name := fmt.Sprintf("fleet of %d, %s", p.Processes, what)
	p.Told = func(s stepReport) {
		if !s.Settled && !outage[s.Name] {
			t.Errorf("%s: %d processes have no IDs at its end", s.Name, s.Without)
		}
		if !outage[s.Name] {
			t.Logf("report: %s: %v", name, s)
		}
	}
	began := time.Now()
	r, err := runPlan(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Steps {
		steps[s.Name] = s
		if outage[s.Name] { // the time until all had IDs is known now
			t.Logf("report: %s: %v", name, s)
		}
	}
	t.Logf("report: %s: %d IDs checked, %d node IDs acquired, %d renewals; it took %v",
		name, r.IDs, r.Acquired, r.Renewed, time.Since(began).Round(time.Millisecond))
	if r.Violation != "" {
		t.Error(r.Violation)
	}
	if r.Alarms != 0 {
		t.Errorf("%d alarms, and nothing happened that asks for one", r.Alarms)
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
	if s := steps["rollout"]; s.Wait(0.99) > time.Second || s.Count[readAll] > 0 || s.Count[refused] > p.Processes/100 {
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

// TestNoRoom: there are just as many node IDs as processes, so all search for
// the last ones, and those of crashed processes are blocked for a window.
func TestNoRoom(t *testing.T) {
	processes, bits := 1<<9, 9
	switch {
	case soak():
		processes, bits = 1<<12, 12
	case testing.Short():
		processes, bits = 1<<6, 6
	}
	runFleet(t, "no number to spare", usualPlan(processes, bits, time.Minute))
}

// TestSilent: the store does not answer while it is down.
func TestSilent(t *testing.T) {
	processes, bits := size()
	p := usualPlan(processes, bits+1, time.Minute)
	p.Store.Silent = true
	p.Steps = p.Steps[5:]
	runFleet(t, "no answers in an outage", p)
}
