package sim

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/internal/mutant"
)

var seedFlag = flag.Uint64("seed", 0, "run this seed alone (TestSeed)")

// runs is how many runs of how many hours are made, with and without FIRN_SOAK.
func runs() (seeds uint64, hours int) {
	if os.Getenv("FIRN_SOAK") != "" {
		return 10_000, 12
	}
	return 170, 12
}

// inParallel calls do for the seeds 1 to n.
func inParallel(n uint64, do func(seed uint64)) {
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range seeds {
				do(seed)
			}
		})
	}
	for seed := uint64(1); seed <= n; seed++ {
		seeds <- seed
	}
	close(seeds)
	workers.Wait()
}

// TestSimulator holds what docs/protocol.md promises against faults of all kinds.
func TestSimulator(t *testing.T) {
	seeds, hours := runs()
	var mu sync.Mutex
	var sum Result
	inParallel(seeds, func(seed uint64) {
		r := Run(seed, hours)
		mu.Lock()
		defer mu.Unlock()
		if r.Violation != "" {
			t.Errorf("%s\nto see it again: go test ./grant/sim -run TestSeed -seed=%d", r.Violation, seed)
		}
		sum.Hours += r.Hours
		sum.IDs += r.IDs
		sum.Renewals += r.Renewals
		sum.Acquired += r.Acquired
		sum.Alarms += r.Alarms
		sum.Tries += r.Tries
		sum.Failed += r.Failed
		for f, n := range r.Faults {
			sum.Faults[f] += n
		}
	})
	var kinds []string
	for f, n := range sum.Faults {
		kinds = append(kinds, fmt.Sprintf("%v %d", Fault(f), n))
		if n == 0 {
			t.Errorf("the fault %v never happened", Fault(f))
		}
	}
	t.Logf("report: sim: %d runs, %.0f hours, %d IDs, %d node numbers acquired, %d renewals, %d alarms", seeds, sum.Hours, sum.IDs, sum.Acquired, sum.Renewals, sum.Alarms)
	t.Logf("report: sim: faults: %s", strings.Join(kinds, ", "))
	missing := 100 * float64(sum.Failed) / float64(max(sum.Tries, 1))
	t.Logf("report: sim: %d of %d IDs wanted while nothing was amiss were not had: %.4f %%", sum.Failed, sum.Tries, missing)
	if sum.Hours < 2000 || sum.IDs < 20_000_000 {
		t.Errorf("%.0f hours and %d IDs, want 2,000 and 20,000,000", sum.Hours, sum.IDs)
	}
	if missing > 1 {
		t.Errorf("%.2f %% of the IDs wanted while nothing was amiss were not had", missing)
	}
}

// TestDeterminism: a seed does the same every time.
func TestDeterminism(t *testing.T) {
	inParallel(20, func(seed uint64) {
		if a, b := Run(seed, 2), Run(seed, 2); a != b {
			t.Errorf("seed %d: %+v, and then %+v", seed, a, b)
		}
	})
}

// TestSeed runs one seed.
func TestSeed(t *testing.T) {
	if *seedFlag == 0 {
		*seedFlag = 1
	}
	_, hours := runs()
	r := Run(*seedFlag, hours)
	t.Logf("%+v", r)
	if r.Violation != "" {
		t.Error(r.Violation)
	}
}

// focuses are what makes a mistake show soon. The mistakes that are not here show in
// any run.
var focuses = map[mutant.Mutant]Focus{
	mutant.SealLate:        {Faults: []Fault{Released, LateSeal}},
	mutant.CompareRevision: {Faults: []Fault{Restore, Crashed, Released, ClockStep}, Window: 5000, Every: 5000, Step: 5000, Brief: true},
	mutant.NoFence:         {Faults: []Fault{Restore, Released, Crashed}, Window: 60_000, Every: 10_000, Brief: true},
	mutant.FloorOnly:       {Faults: []Fault{Restore, Stopped, ClockStep}, Window: 5000, Every: 5000, Step: 5000, Brief: true},
	mutant.NoConfigReread:  {Faults: []Fault{DetachedAll, DestroyedAll, Crashed, Crashed, Released}, Window: 5000, Every: 2000, Slow: 0.5, Delay: 800},
	mutant.SlotAcrossTerms: {Faults: []Fault{Released, Partition}, Window: 5000, Every: 10_000, Paused: 0.05},
	mutant.ReleaseForeign:  {Faults: []Fault{Released, Stopped, Partition}, Window: 5000, Every: 20_000},
}

// TestFocuses: what makes mistakes show soon is no mistake by itself.
func TestFocuses(t *testing.T) {
	for m, focus := range focuses {
		inParallel(6, func(seed uint64) {
			if r := RunWith(seed, 2, focus); r.Violation != "" {
				t.Errorf("the focus for %q, seed %d: %s", m, seed, r.Violation)
			}
		})
	}
}

// TestMutants switches on one deliberate mistake at a time, and wants an oracle to
// notice it. Mistakes are compiled in with a tag, so it builds itself with that.
func TestMutants(t *testing.T) {
	if mutant.Enabled {
		testMutants(t)
		return
	}
	if testing.Short() {
		t.Skip("skipped: it takes a while")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "test", "-tags=firnmutant", "-run=^TestMutants$", "-v", "-count=1", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if _, text, ok := strings.Cut(line, "report: "); ok {
			t.Logf("report: %s", strings.TrimSpace(text))
		}
	}
}

func testMutants(t *testing.T) {
	const most, hours = 24, 3
	caught := 0
	for _, m := range mutant.All() {
		mutant.Set(m)
		var mu sync.Mutex
		first := Result{Seed: most + 1}
		tried := 0.0
		inParallel(most, func(seed uint64) {
			mu.Lock()
			done := first.Seed <= most
			mu.Unlock()
			if done {
				return
			}
			r := RunWith(seed, hours, focuses[m])
			mu.Lock()
			defer mu.Unlock()
			tried += r.Hours
			if r.Violation != "" && seed < first.Seed {
				first = r
			}
		})
		mutant.Set(mutant.None)
		if first.Violation == "" {
			t.Errorf("the mutant %q survives %.0f hours", m, tried)
			continue
		}
		caught++
		oracle, _, _ := strings.Cut(first.Violation, ":")
		t.Logf("report: mutant %-20s caught by %-9s after %5.2f hours of run %d: %s", m.String()+",", "\""+oracle+"\"", first.Hours, first.Seed, first.Violation)
	}
	t.Logf("report: mutants: %d of %d caught", caught, len(mutant.All()))
	if r := Run(1, 1); r.Violation != "" {
		t.Errorf("without a mutant: %s", r.Violation)
	}
}
