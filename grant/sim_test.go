package grant

import (
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/internal/mutant"
)

var seedFlag = flag.Uint64("seed", 0, "run this seed alone (TestSeed)")

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

// inParallel calls do for the seeds 1 to n.
func inParallel(n uint64, do func(seed uint64)) { inTime(n, 0, do) }

// inTime calls do for the seeds 1 to n, and begins none after the limit, unless
// it is 0. It returns the number of calls.
func inTime(n uint64, limit time.Duration, do func(seed uint64)) (done uint64) {
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
	for begin := time.Now(); done < n && (limit == 0 || time.Since(begin) < limit); {
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
	var mu sync.Mutex
	var sum result
	began := time.Now()
	seeds = inTime(seeds, soakTime(), func(seed uint64) {
		r := runSim(seed, hours)
		mu.Lock()
		defer mu.Unlock()
		if r.Violation != "" {
			t.Errorf("%s\nin the world %s\nto see it again: go test ./grant -run TestSeed -seed=%d", r.Violation, r.World, seed)
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

// TestDeterminism: a seed gives the same run every time.
func TestDeterminism(t *testing.T) {
	seeds := uint64(2)
	if fullRun() {
		seeds = 20
	}
	inParallel(seeds, func(seed uint64) {
		if a, b := runSim(seed, 2), runSim(seed, 2); a != b {
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
	r := runSim(*seedFlag, hours)
	t.Logf("%+v", r)
	if r.Violation != "" {
		t.Error(r.Violation)
	}
}

// A mistake is one of package mutant: what it breaks, and the focus in which it
// shows soon; without one it shows in any run. A mistake that no simulation
// detects, because it is made outside the machine, names the test that does.
type mistake struct {
	breaks    string
	focus     focus
	elsewhere string
}

// mistakes are those of package mutant.
//
// Two are made in the generator's part of the simulator. "tick at until" moves
// the limit by a tick, like a term with the test slot's tick <= until; "slot
// across terms" composes an earlier slot again. "owner unchecked", "lineage
// ignored" and "revision on read" are made in the simulator's model of a server
// and of a Keeper, the latter two also in the Keeper.
var mistakes = map[mutant.Mutant]mistake{
	mutant.StartAtClock:     {breaks: "lemma 2: from is the clock, not max(clock, mark, floor)"},
	mutant.SealLate:         {breaks: "lemma 2: a release's mark is from before the seal", focus: focus{Faults: []fault{released, lateSeal}}},
	mutant.TimeoutIsSuccess: {breaks: "lemmas 1, 4: a CAS without an answer counts as applied"},
	mutant.BlindRenewal:     {breaks: "lemma 1: a renewal overwrites what is there"},
	mutant.StaleMemory:      {breaks: "lemma 5: a node ID held before continues where its memory ended"},
	mutant.CompareRevision: {
		breaks: "lemmas 5, 7: a CAS compares revisions, not contents",
		focus:  focus{Faults: []fault{restore, crashed, released, clockStep}, Window: 5000, Every: 5000, Step: 5000, Brief: true},
	},
	mutant.NoFence: {
		breaks: "lemma 7: nothing is fenced after a restore",
		focus:  focus{Faults: []fault{restore, released, crashed}, Window: 60_000, Every: 10_000, Brief: true},
	},
	mutant.FloorOnly: {
		breaks: "lemma 7: a fence sets the floor and leaves the records",
		focus:  focus{Faults: []fault{restore, suspended, clockStep}, Window: 5000, Every: 5000, Step: 5000, Brief: true},
	},
	mutant.TickAtUntil: {breaks: "lemma 3: the limit's own tick is used too"},
	mutant.CursorBack:  {breaks: "lemma 3: a renewal puts the word back to the clock"},
	mutant.NoConfigReread: {
		breaks: "lemma 6: a claim is used without another look at the configuration",
		focus:  focus{Faults: []fault{detachedAll, destroyedAll, crashed, crashed, released}, Window: 5000, Every: 2000, Slow: 0.5, Delay: 800},
	},
	mutant.ReleaseForeign: {
		breaks: "lemma 2: a release overwrites what is there",
		focus:  focus{Faults: []fault{released, suspended, partition}, Window: 5000, Every: 20_000},
	},
	mutant.SlotAcrossTerms: {
		breaks: "lemma 3: a slot of one term, the node ID of the next",
		focus:  focus{Faults: []fault{released, partition}, Window: 5000, Every: 10_000, Paused: 0.05},
	},
	mutant.TakeoverHeld: {breaks: "lemma 2: a held number is taken at the clock, below its mark"},
	mutant.RangeIgnored: {breaks: "the range of a member"},
	mutant.AdoptOnRead: {
		breaks: "lemma 1: an attempt that a read shows counts as applied",
		focus:  focus{World: "standby", Faults: []fault{lag, crashed, released}, Window: 5000, Every: 5000},
	},
	mutant.MarkUncapped: {
		breaks: "lemma 7: a mark grows however far it is ahead of the clock",
		focus:  focus{Faults: []fault{restore}, Calls: []simCall{callReserve}, Window: 30_000, Every: 20_000},
	},
	mutant.FenceShortWindow: {
		breaks: "lemma 7: a fence knows no window but that of the configuration it finds",
		focus:  focus{World: "skewed", Faults: []fault{changed, restore}, Every: 20_000},
	},
	mutant.FenceLowersMark: {
		breaks: "lemma 7: a fence lowers a mark that lies above its floor",
		focus:  focus{World: "wild", Faults: []fault{fenced, clockSet, released}, Window: 5000, Every: 5000},
	},
	mutant.FenceUnheard: {
		breaks: "lemma 7: a window that ends above a new floor stays in use",
		focus:  focus{World: "skewed", Faults: []fault{changed, restore}, Calls: []simCall{callReserve}, Window: 5000, Every: 300_000, Busy: 5000},
	},
	mutant.ZeroIsNoTime: {
		breaks: "lemma 2: a window that begins or ends at Unix 0 has no beginning or end",
		focus:  focus{World: "skewed", Format: "1960", Begin: -5 * second, Window: 5000, Coarse: true},
	},
	mutant.DropToClock: {
		breaks: "lemma 2: a claim that is dropped returns to the clock",
		focus:  focus{World: "wild", Faults: []fault{released, detachedAll, clockStep}, Calls: []simCall{callReserve}, Window: 5000, Every: 1000, Busy: 500, Slow: 0.3, Delay: 800},
	},
	mutant.RoundDown: {
		breaks: "lemma 2: the mark of a release is rounded down to a millisecond",
		focus:  focus{Format: "100us", Faults: []fault{released}, Every: 20_000, Busy: 500},
	},
	mutant.RecheckState: {
		breaks: "lemma 6: after a claim the state is compared and not the bytes",
		focus:  focus{World: "skewed", Faults: []fault{fenced, released, crashed}, Window: 5000, Every: 2000, Slow: 0.5, Delay: 800},
	},
	mutant.ShrunkRecord: {breaks: "freeze: a member whose record shrank continues", elsewhere: "grant.TestKeeperMistakes"},
	mutant.SealAsync:    {breaks: "lemma 2: a Keeper continues before the seal has returned", elsewhere: "grant.TestKeeperMistakes"},
	mutant.GapCrossed: {
		breaks: "lemma 8: a window reaches into a span that a repair set apart",
		focus:  focus{World: "wild", Faults: []fault{clockSet, crashed, released}, Window: 5000, Every: 20_000},
	},
	mutant.LineageIgnored: {breaks: "freeze: a member writes to a store that does not return its position", elsewhere: "grant.TestKeeperMistakes"},
	mutant.RevisionOnRead: {
		breaks: "freeze: a revision that only a read has shown must never fall",
		focus:  focus{World: "lineage, standby", Faults: []fault{lag}, Window: 5000, Every: 5000},
	},
	mutant.FreezeUnsealed: {
		breaks: "freeze: a member that finds another's window in its own uses the rest",
		focus:  focus{World: "skewed", Format: "few", Faults: []fault{rollback}, Window: 30_000, Every: 60_000, Busy: 500},
	},
	mutant.FromRenewed: {
		breaks: "freeze: a renewal writes where it begins, not where its grant began",
		focus:  focus{World: "skewed", Format: "few", Faults: []fault{rollback}, Window: 30_000, Every: 60_000, Busy: 500},
	},
	mutant.WallForFrom: {
		breaks: "freeze: a window is another's if the clock that wrote it is past ours",
		focus:  focus{World: "skewed", Format: "few", Faults: []fault{rollback}, Window: 30_000, Every: 60_000, Busy: 500},
	},
	mutant.OverlapAsTakeover: {
		breaks: "freeze: another's window in ours is taken for a takeover",
		focus:  focus{World: "skewed", Format: "few", Faults: []fault{rollback}, Window: 30_000, Every: 60_000, Busy: 500},
	},
	mutant.ClaimAhead:       {breaks: "stalls: a clock that is ahead of the store's claims numbers", focus: focus{World: "besieged, clock"}},
	mutant.CursorKeepsBlock: {breaks: "lemma 3: a cursor continues with its block after a wait in line", elsewhere: "firn.TestCursorForgetsItsBlockInLine"},
	mutant.OwnerUnchecked:   {breaks: "forwarding: IDs are passed on without a look at their owner"},
}

// TestFocuses: faults that make mistakes show sooner are not mistakes
// themselves.
func TestFocuses(t *testing.T) {
	seeds, hours := uint64(1), 1
	switch {
	case soak() && soakTime() == 0:
		seeds, hours = 600, 2
	case fullRun():
		seeds = 4
	case testing.Short():
		t.Skip("it runs a world for each mistake; TestSimulator has a few runs of all")
	}
	for m, mistake := range mistakes {
		if reflect.ValueOf(mistake.focus).IsZero() {
			continue // as in TestSimulator
		}
		inParallel(seeds, func(seed uint64) {
			if r := runWith(seed, hours, mistake.focus); r.Violation != "" {
				t.Errorf("the focus for %q, seed %d: %s", m, seed, r.Violation)
			}
		})
	}
}

// TestMutants enables one deliberate mistake at a time, and expects an oracle
// or a test to detect it. Mistakes are compiled in with a tag, so the test
// builds itself with it. The table is in the output of go test -v. It has those
// that show soonest, and with FIRN_ALL=1 all.
func TestMutants(t *testing.T) {
	if mutant.Enabled {
		testMutants(t)
		return
	}
	if testing.Short() {
		t.Skip("it builds the tests with every mistake, which takes minutes")
	}
	tests := []string{"TestMutants", "TestHistoric"}
	for _, mistake := range mistakes {
		if _, name, ok := strings.Cut(mistake.elsewhere, "."); ok && !slices.Contains(tests, name) {
			tests = append(tests, name)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-timeout=0", "-tags=firnmutant", "-run=^("+strings.Join(tests, "|")+")$", "-v", "-count=1",
		".", "github.com/firnid/firn").CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	reports := 0
	for line := range strings.Lines(string(out)) {
		if _, row, ok := strings.Cut(line, "table: "); ok {
			t.Log(strings.TrimSpace(row))
		}
		if _, text, ok := strings.Cut(line, "report: "); ok {
			t.Logf("report: %s", strings.TrimSpace(text))
			reports++
		}
	}
	for _, name := range tests {
		if !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Errorf("%s did not run", name)
		}
	}
	if reports < 3 {
		t.Errorf("%d reports, of mistakes and of incidents; the output was\n%s", reports, out)
	}
}

// soonest are mistakes that usually show in the first hour.
var soonest = []mutant.Mutant{
	mutant.TimeoutIsSuccess, mutant.CursorBack, mutant.NoConfigReread, mutant.SlotAcrossTerms, mutant.RangeIgnored,
	mutant.AdoptOnRead, mutant.FenceLowersMark, mutant.RoundDown, mutant.GapCrossed, mutant.RevisionOnRead,
}

func testMutants(t *testing.T) {
	const most = uint64(24)
	hours := 2
	if !fullRun() {
		hours = 1
	}
	const row = "table: %-20s | %-75s | %-8s | %3v | %6v | %s"
	t.Logf(row, "mutant", "what it breaks", "oracle", "run", "hours", "what was seen")
	caught, elsewhere, sum := 0, 0, 0.0
	needed := make(map[mutant.Mutant]uint64) // runs
	for _, m := range mutant.All() {
		mistake, ok := mistakes[m]
		switch {
		case !ok:
			t.Errorf("the mutant %q is not in the table", m)
			continue
		case mistake.elsewhere != "":
			t.Logf(row, m, mistake.breaks, "test", "", "", mistake.elsewhere)
			elsewhere++
			continue
		case !fullRun() && !slices.Contains(soonest, m):
			continue
		}
		mutant.Set(m)
		var mu sync.Mutex
		first := result{Seed: most + 1}
		tried := 0.0
		inParallel(most, func(seed uint64) {
			mu.Lock()
			done := first.Seed < seed
			mu.Unlock()
			if done {
				return
			}
			r := runWith(seed, hours, mistake.focus)
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
		needed[m] = first.Seed
		seen := float64(first.Seed-1)*float64(hours) + first.Hours
		sum += seen
		oracle, what, _ := strings.Cut(first.Violation, ": ")
		t.Logf(row, m, mistake.breaks, oracle, first.Seed, fmt.Sprintf("%.2f", seen), what)
	}

	// The same runs without a mistake.
	passed := 0
	for m, seeds := range needed {
		inParallel(seeds, func(seed uint64) {
			if r := runWith(seed, hours, mistakes[m].focus); r.Violation != "" {
				t.Errorf("without a mistake, seed %d of %q: %s", seed, m, r.Violation)
			}
		})
		passed += int(seeds)
	}
	t.Logf("report: mutants: %d of %d caught, in %.1f simulated hours, and %d by tests; without a mistake the same %d runs pass, of %d hours each",
		caught, len(mutant.All()), sum, elsewhere, passed, hours)
}
