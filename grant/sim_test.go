package grant

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "let TestSimulator run this seed alone")

// runs returns the number of runs, and their hours: some, or with FIRN_ALL=1 as
// many as show every fault. With FIRN_SOAK=1 they take some hours: two cores
// simulate 15 to 30 hours of the world per second. With FIRN_SOAK=30m there are
// as many as fit into half an hour.
func runs() (seeds uint64, hours int) {
	if soakTime() > 0 {
		return math.MaxUint64, 5
	}
	if soak() {
		return 20_000, 5
	}
	if fullRun() {
		return allRuns, 5
	}
	if testing.Short() {
		return 2, 5
	}
	return 10, 5
}

// allRuns is the number of runs in which every fault and every call happens.
const allRuns = 100

// fullRun reports whether everything is wanted, and not a part.
func fullRun() bool { return os.Getenv("FIRN_ALL") != "" || soak() }

func soak() bool { return os.Getenv("FIRN_SOAK") != "" }

// soakTime is the time that FIRN_SOAK gives, or 0.
func soakTime() time.Duration {
	d, _ := time.ParseDuration(os.Getenv("FIRN_SOAK"))
	return d
}

// inParallel calls do for the seeds 1 to n, until the test fails.
func inParallel(t *testing.T, n uint64, do func(seed uint64)) { inTime(t, n, 0, do) }

// inTime calls do for the seeds 1 to n, and begins none after the limit, unless
// it is 0, or after the test has failed. It returns the number of calls.
func inTime(t *testing.T, n uint64, limit time.Duration, do func(seed uint64)) (done uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a run is small, and makes much garbage
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range seeds {
				do(seed)
			}
		})
	}
	for begin := time.Now(); done < n && !t.Failed() && (limit == 0 || time.Since(begin) < limit); {
		done++
		seeds <- done
	}
	close(seeds)
	workers.Wait()
	return done
}

// TestSimulator checks the promises of docs/protocol.md under faults of all
// kinds.
func TestSimulator(t *testing.T) {
	seeds, hours := runs()
	if *seedFlag != 0 {
		r := runSim(*seedFlag, hours)
		t.Logf("%+v", r)
		if r.Violation != "" {
			t.Error(r.Violation)
		}
		return
	}
	var mu sync.Mutex
	var sum result
	began := time.Now()
	seeds = inTime(t, seeds, soakTime(), func(seed uint64) {
		r := runSim(seed, hours)
		mu.Lock()
		defer mu.Unlock()
		if r.Violation != "" {
			t.Errorf("%s\nin the world %s\nto see it again: go test ./grant -run TestSimulator -seed=%d", r.Violation, r.World, seed)
		}
		sum.add(r)
	})
	var kinds, made []string
	for f, n := range sum.Faults {
		kinds = append(kinds, fmt.Sprintf("%v %d", fault(f), n))
		if n == 0 && seeds >= allRuns { // fewer runs need not cover all
			t.Errorf("the fault %v never happened", fault(f))
		}
	}
	for c, n := range sum.Calls {
		made = append(made, fmt.Sprintf("%v %d", simCall(c), n))
		if n == 0 && seeds >= allRuns {
			t.Errorf("the call %v was never made", simCall(c))
		}
	}
	t.Logf("report: sim: %d runs, %.0f hours, %d IDs and %d more in large reservations, %d node IDs acquired, %d renewals, %d alarms; %.0f hours in a second",
		seeds, sum.Hours, sum.IDs, sum.Reserved, sum.Acquired, sum.Renewals, sum.Alarms, sum.Hours/time.Since(began).Seconds())
	t.Logf("report: sim: faults: %s", strings.Join(kinds, ", "))
	t.Logf("report: sim: calls: %s", strings.Join(made, ", "))
	missing, besieged := percent(sum.Failed, sum.Tries), percent(sum.BesiegedFailed, sum.BesiegedTries)
	t.Logf("report: sim: %.3f %% of %d IDs wanted while nothing was amiss were not made; %.3f %% of %d beside a host whose clock is a year ahead",
		missing, sum.Tries, besieged, sum.BesiegedTries)
	wantHours, wantIDs := float64(seeds)*float64(hours), 100_000*int(seeds)
	if soak() {
		wantHours, wantIDs = 100_000, 1_000_000_000
	}
	if soakTime() > 0 || testing.Short() {
		wantHours, wantIDs = float64(hours), 1
	}
	if sum.Hours < wantHours || sum.IDs < wantIDs {
		t.Errorf("%.0f hours and %d IDs, want %.0f and %d", sum.Hours, sum.IDs, wantHours, wantIDs)
	}
	if missing > 1 || besieged > 1 {
		t.Errorf("%.2f %% of the IDs wanted while nothing was amiss were not made, and %.2f %% of those beside a wrong clock", missing, besieged)
	}
}

// add adds the result of another run.
func (r *result) add(other result) {
	r.Hours += other.Hours
	for _, n := range []struct {
		to *int
		n  int
	}{
		{&r.IDs, other.IDs}, {&r.Reserved, other.Reserved}, {&r.Renewals, other.Renewals}, {&r.Acquired, other.Acquired}, {&r.Alarms, other.Alarms},
		{&r.Tries, other.Tries}, {&r.Failed, other.Failed},
		{&r.BesiegedTries, other.BesiegedTries}, {&r.BesiegedFailed, other.BesiegedFailed},
	} {
		*n.to += n.n
	}
	for f, n := range other.Faults {
		r.Faults[f] += n
	}
	for c, n := range other.Calls {
		r.Calls[c] += n
	}
}

func percent(part, of int) float64 { return 100 * float64(part) / float64(max(of, 1)) }

// TestSeed: a seed determines a run.
func TestSeed(t *testing.T) {
	inParallel(t, 2, func(seed uint64) {
		often := focus{Calls: []simCall{callPrefetch, callNext}, Window: 5000, Busy: 2000}
		if a, b := runWith(seed, 1, often), runWith(seed, 1, often); a != b {
			t.Errorf("two runs of the same seed differ:\n%+v\n%+v", a, b)
		}
	})
}

var rolledBack = focus{World: "skewed", Format: "few", Faults: []fault{rollback}, Window: 30_000, Every: 60_000, Busy: 500}

// focuses are the worlds in which mistakes show soon, by the names of the
// mistakes; others show in any run. TestMistakes makes the mistakes. "tick at
// until" and "slot across terms" are made in the generator's part of the
// simulator, "revision on read" in its model of a Keeper, and also in the
// Keeper.
var focuses = map[string]focus{
	"seal late":           {Faults: []fault{released, lateSeal}},
	"compare revision":    {Faults: []fault{restore, crashed, released, clockStep}, Window: 5000, Every: 5000, Step: 5000, Brief: true},
	"no fence":            {Faults: []fault{restore, released, crashed}, Window: 60_000, Every: 10_000, Brief: true},
	"floor only":          {Faults: []fault{restore, suspended, clockStep}, Window: 5000, Every: 5000, Step: 5000, Brief: true},
	"no config re-read":   {Faults: []fault{detachedAll, destroyedAll, crashed, crashed, released}, Window: 5000, Every: 2000, Slow: 0.5, Delay: 800},
	"release foreign":     {Faults: []fault{released, suspended, partition}, Window: 5000, Every: 20_000},
	"slot across terms":   {Faults: []fault{released, partition}, Window: 5000, Every: 10_000, Paused: 0.05},
	"adopt on read":       {World: "standby", Faults: []fault{lag, crashed, released}, Window: 5000, Every: 5000},
	"mark uncapped":       {Faults: []fault{restore}, Calls: []simCall{callReserve}, Window: 30_000, Every: 20_000},
	"fence short window":  {World: "skewed", Faults: []fault{changed, restore}, Every: 20_000},
	"fence lowers mark":   {World: "wild", Faults: []fault{fenced, clockSet, released}, Window: 5000, Every: 5000},
	"fence unheard":       {World: "skewed", Faults: []fault{changed, restore}, Calls: []simCall{callReserve}, Window: 5000, Every: 300_000, Busy: 5000},
	"zero means no time":  {World: "skewed", Format: "1960", Begin: -5 * second, Window: 5000, Coarse: true},
	"drop to clock":       {World: "wild", Faults: []fault{released, detachedAll, clockStep}, Calls: []simCall{callReserve}, Window: 5000, Every: 1000, Busy: 500, Slow: 0.3, Delay: 800},
	"round down":          {Format: "100us", Faults: []fault{released}, Every: 20_000, Busy: 500},
	"recheck state":       {World: "skewed", Faults: []fault{fenced, released, crashed}, Window: 5000, Every: 2000, Slow: 0.5, Delay: 800},
	"gap crossed":         {World: "wild", Faults: []fault{clockSet, crashed, released}, Window: 5000, Every: 20_000},
	"revision on read":    {World: "lineage, standby", Faults: []fault{lag}, Window: 5000, Every: 5000},
	"freeze unsealed":     rolledBack,
	"from renewed":        rolledBack,
	"wall for from":       rolledBack,
	"overlap as takeover": rolledBack,
	"claim ahead":         {World: "besieged, clock"},
}

// TestFocuses: faults that make mistakes show sooner are not mistakes
// themselves.
func TestFocuses(t *testing.T) {
	seeds, hours := uint64(1), 1
	switch {
	case os.Getenv("FIRN_MISTAKE") != "":
		seeds, hours = 24, 2 // until it shows
	case soak() && soakTime() == 0:
		seeds, hours = 600, 2
	case fullRun():
		seeds = 4
	case testing.Short():
		t.Skip("it runs a world for each mistake; TestSimulator has a few runs of all")
	}
	for name, focus := range focuses {
		t.Run(name, func(t *testing.T) {
			inParallel(t, seeds, func(seed uint64) {
				if r := runWith(seed, hours, focus); r.Violation != "" {
					t.Errorf("seed %d: %s", seed, r.Violation)
				}
			})
		})
	}
}
