package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

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

// TestMutants switches on one deliberate mistake at a time, and wants the
// simulator to notice it. It needs a build with the tag that allows that:
//
//	go test -tags firnmutant ./grant/sim -run TestMutants -v -timeout 30m
//
// It is not part of make test yet: comparing revisions instead of values is not
// noticed within so few runs.
func TestMutants(t *testing.T) {
	if !mutant.Enabled {
		t.Skip("skipped: mutants: not all are noticed in the time there is; -tags firnmutant runs them")
	}
	testMutants(t)
}

func testMutants(t *testing.T) {
	const most, hours = 60, 3
	for _, m := range mutant.All() {
		mutant.Set(m)
		caught := uint64(0)
		var r Result
		for seed := uint64(1); seed <= most && caught == 0; seed++ {
			if r = Run(seed, hours); r.Violation != "" {
				caught = seed
			}
		}
		mutant.Set(mutant.None)
		if caught == 0 {
			t.Errorf("the mutant %q survives %d runs", m, most)
			continue
		}
		t.Logf("mutant: %-20s caught by run %3d: %s", m, caught, r.Violation)
	}
	if r := Run(1, 1); r.Violation != "" {
		t.Errorf("without a mutant: %s", r.Violation)
	}
}
