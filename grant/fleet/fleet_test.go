package fleet

import (
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

// size is how many processes there are, and how many bits has as many node
// numbers.
func size() (processes, bits int) {
	if os.Getenv("FIRN_SOAK") != "" {
		return 1 << 16, 16
	}
	return 1 << 11, 11
}

// plan is what a fleet goes through in these tests.
func plan(processes, bits int) Plan {
	return Plan{
		Seed: 1, Processes: processes, NodeBits: bits, Window: time.Minute, Skew: 20 * time.Millisecond, Store: Etcd(),
		Steps: []Step{
			{Name: "settling", Lasts: time.Minute},
			{Name: "running", Lasts: 3 * time.Minute},
			{Name: "rollout", Lasts: 5 * time.Minute, Replace: &Rollout{Crash: 0.02, Gap: 2 * time.Second}, Settle: 10 * time.Minute},
			{Name: "running on", Lasts: time.Minute},
			{Name: "outage of 20 s", Lasts: 20 * time.Second, Outage: true},
			{Name: "after 20 s", Lasts: time.Minute, Settle: 10 * time.Minute},
			{Name: "outage of 3 min", Lasts: 3 * time.Minute, Outage: true},
			{Name: "after 3 min", Lasts: time.Minute, Settle: 10 * time.Minute},
		},
	}
}

// run does what a plan says.
func run(t *testing.T, what string, p Plan) map[string]StepReport {
	t.Helper()
	began := time.Now()
	r, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	steps := make(map[string]StepReport)
	for _, s := range r.Steps {
		steps[s.Name] = s
		t.Logf("report: fleet of %d, %s: %v", p.Processes, what, s)
		if !s.Settled && !slices.ContainsFunc(p.Steps, func(step Step) bool { return step.Name == s.Name && step.Outage }) {
			t.Errorf("%s: %d processes have no IDs at its end", s.Name, s.Without)
		}
	}
	t.Logf("report: fleet of %d, %s: %d IDs checked, %d node numbers acquired, %d renewals; it took %v",
		p.Processes, what, r.IDs, r.Acquired, r.Renewed, time.Since(began).Round(time.Millisecond))
	if r.Violation != "" {
		t.Error(r.Violation)
	}
	if r.Alarms != 0 {
		t.Errorf("%d alarms, and nothing happened that asks for one", r.Alarms)
	}
	return steps
}

// TestFleet: what docs/scale.md says of fleets, with twice as many node numbers as
// processes.
func TestFleet(t *testing.T) {
	processes, bits := size()
	p := plan(processes, bits+1)
	steps := run(t, "room for twice as many", p)

	// 3N/W writes, as many reads of where the store is, and nothing else.
	want := 3 * float64(processes) / p.Window.Seconds()
	if s := steps["running"]; math.Abs(s.Writes.Mean/want-1) > 0.05 || math.Abs(s.Reads.Mean/want-1) > 0.05 || len(s.Waits) > 0 {
		t.Errorf("running: %v; want %.0f reads and writes in a second", s, want)
	}
	if s := steps["outage of 20 s"]; len(s.Waits) > 0 {
		t.Errorf("%d processes stood without IDs, and each has at least 60 %% of its window when the outage begins", len(s.Waits))
	}
	if s := steps["outage of 3 min"]; len(s.Waits) != processes {
		t.Errorf("%d processes stood without IDs in an outage that is longer than the window, want all", len(s.Waits))
	}
	// Tries are at least half of the longest wait apart, 2.5 s, of each process.
	for _, name := range []string{"after 20 s", "after 3 min"} {
		if s := steps[name]; s.Writes.Peak > float64(processes)/2.5+2*want {
			t.Errorf("%v: the peak of writes is more than jitter allows", s)
		}
	}
}

// TestSilent: the same where the store gives no answer in an outage.
func TestSilent(t *testing.T) {
	processes, bits := size()
	p := plan(processes, bits+1)
	p.Store.Silent = true
	p.Steps = p.Steps[4:]
	run(t, "no answers in an outage", p)
}

// TestSame: a seed does the same every time.
func TestSame(t *testing.T) {
	p := plan(200, 8)
	first, err := Run(p)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Run(p)
	if err != nil || first.Trace != second.Trace || first.IDs != second.IDs {
		t.Errorf("%x with %d IDs, and then %x with %d, %v", first.Trace, first.IDs, second.Trace, second.IDs, err)
	}
	p.Seed++
	if third, err := Run(p); err != nil || third.Trace == first.Trace {
		t.Errorf("another seed does the same, %v", err)
	}
}
