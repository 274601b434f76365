package grant

import (
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn"
)

// A plan is what happens to a fleet: it starts, runs, and then goes through the
// Steps. Zero fields mean the defaults given for them.
type plan struct {
	Seed      uint64
	Processes int
	NodeBits  int           // of the layout, so there are 1<<NodeBits node IDs
	Window    time.Duration // of the sequencer; zero is 60 seconds
	Skew      time.Duration // clocks are wrong by up to this in either direction
	StartOver time.Duration // the processes start at random moments within this time; zero means all at once
	Store     pace
	Steps     []step

	// Told is called at the end of every step with its report; it may be nil.
	Told func(stepReport)
}

// A pace is the speed of the simulated store, which does one thing at a time.
type pace struct {
	Way      time.Duration // of a request, and of its answer: half to three halves of this, at random
	Read     time.Duration // a read of any number of keys
	Key      time.Duration // each key of a read or a list, in addition
	Write    time.Duration // a compare-and-swap, applied or not
	Blind    bool          // it has no grant.Lineage; otherwise it is read before writes and before the configuration is read
	Stubborn bool          // it also handles requests that were abandoned before their turn
	Silent   bool          // in an outage nothing is answered; otherwise requests are refused at once
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

// A step is a part of a plan. Exactly one field besides Lasts is set; if none
// is, the fleet just runs.
type step struct {
	Name  string
	Lasts time.Duration // then until Settle is met

	Replace *rollout // every process is replaced within Lasts
	Outage  bool     // the store does not answer

	// Settle extends the step until all processes have IDs, but no longer than
	// this beyond Lasts.
	Settle time.Duration
}

// A rollout defines how processes are replaced.
type rollout struct {
	Crash float64       // the share of the old ones that crash; others give their node ID back
	Surge bool          // the new one has its first ID before the old one ends; otherwise the old one ends first
	Gap   time.Duration // from the end of the old one to the start of the new one, without Surge
}

// A fleetKind is a kind of request.
type fleetKind int

// The kinds of requests.
const (
	readLineage fleetKind = iota // a read of the lineage
	readClock                    // a read of the store's clock
	readConfig                   // a read of the configuration
	readSome                     // a read of some records
	readOne                      // a read of one record
	readAll                      // a read of all records
	applied                      // a compare-and-swap
	refused                      // one that was not applied
	fleetKinds
)

var fleetKindNames = [fleetKinds]string{"lineage", "clock", "config", "pick", "get", "list", "applied", "refused"}

// String returns the kind as a word.
func (k fleetKind) String() string { return fleetKindNames[k] }

// IsWrite reports whether it is a compare-and-swap.
func (k fleetKind) IsWrite() bool { return k >= applied }

// A report is the result of a run.
type report struct {
	Plan      plan
	Steps     []stepReport // the first is the start of all
	IDs       int
	Acquired  int // node IDs
	Renewed   int // windows
	Alarms    int
	Violation string // a violated condition, or ""
}

// A stepReport is the result of one step.
type stepReport struct {
	Name    string
	Lasted  time.Duration
	Settled bool            // all had IDs at its end
	Without int             // processes without IDs then
	All     time.Duration   // from its beginning until all had IDs, for the last time; 0 if none ever lacked them
	Count   [fleetKinds]int // requests that the store handled
	Keys    int             // keys read by picks and lists
	Missed  int             // requests that the store did not answer, or refused, because it was down
	Late    int             // requests whose turn came after they were abandoned
	Reads   rate            // requests per second
	Writes  rate            // requests per second
	Queue   time.Duration   // the longest wait of a request for its turn

	// Processes whose time without IDs began in this step: from the start of a
	// process, or from the end of its window, to its next ID.
	Waits       []time.Duration // in ascending order
	WithoutMost int             // at the same time
}

// A rate is requests per second of virtual time.
type rate struct{ Mean, Peak float64 }

// Wait returns the wait that a part of the waits do not exceed: 0.5 is the
// median.
func (r stepReport) Wait(part float64) time.Duration {
	if len(r.Waits) == 0 {
		return 0
	}
	return r.Waits[min(len(r.Waits)-1, int(part*float64(len(r.Waits))))]
}

// String returns the report as a line.
func (r stepReport) String() string {
	text := fmt.Sprintf("%s, %v", r.Name, r.Lasted.Round(100*time.Millisecond))
	if r.Reads.Peak > 0 || r.Writes.Peak > 0 {
		text += fmt.Sprintf(": reads %.0f/s, at most %.0f/s; writes %.0f/s, at most %.0f/s", r.Reads.Mean, r.Reads.Peak, r.Writes.Mean, r.Writes.Peak)
	}
	if r.Count[refused] > 0 {
		text += fmt.Sprintf(" (%d of %d refused)", r.Count[refused], r.Count[refused]+r.Count[applied])
	}
	if r.Count[readAll] > 0 {
		text += fmt.Sprintf("; %d lists", r.Count[readAll])
	}
	if r.Missed > 0 {
		text += fmt.Sprintf("; %d requests not answered", r.Missed)
	}
	if r.Late > 0 {
		text += fmt.Sprintf("; %d answered too late", r.Late)
	}
	if r.Queue > time.Second {
		text += fmt.Sprintf("; a request waited %v for its turn", shortRun(r.Queue))
	}
	if r.All > 0 {
		text += fmt.Sprintf("; all had IDs after %v", shortRun(r.All))
	}
	switch {
	case len(r.Waits) > 0:
		text += fmt.Sprintf("; %d stood without IDs, %d at once, for %v (p50), %v (p99), %v (most)",
			len(r.Waits), r.WithoutMost, shortRun(r.Wait(0.5)), shortRun(r.Wait(0.99)), shortRun(r.Wait(1)))
	case r.All == 0:
		text += "; nobody stood without IDs"
	}
	return text
}

// shortRun rounds d to two or three digits.
func shortRun(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	case d < time.Second:
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// layout returns the layout of a plan: 64 bits, of which 41 are milliseconds.
func (p plan) layout() (firn.Layout, error) {
	return firn.ParseLayout(fmt.Sprintf("bits=time:41.node:%d.seq:%d,unit=1ms,epoch=2020-01-01T00:00:00Z", p.NodeBits, 22-p.NodeBits))
}

// sorted sorts waits.
func sorted(w []time.Duration) []time.Duration {
	slices.Sort(w)
	return w
}
