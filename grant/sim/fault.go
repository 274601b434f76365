package sim

import "github.com/firnid/firn/grant"

// A Fault is a kind of fault.
type Fault int

// The kinds of faults.
const (
	PausedCall     Fault = iota // between taking an ID and returning it
	LateSeal                    // between deciding to seal and sealing
	Stopped                     // the whole process, for up to 5 minutes
	Crashed                     // memory lost, started again
	Released                    // given back in good order, and attached again
	ClockStep                   // up to a minute
	ClockSet                    // up to an hour
	ClockDrift                  // of up to 200 ppm
	ClockSkew                   // up to two minutes, all the time
	Clock2050                   // for a while
	ClockYear                   // a process that starts a year ahead, and soon ends
	ClockCoarse                 // it has whole seconds
	StoreClock                  // it is wrong
	Partition                   // of one member from the store
	Outage                      // of the store
	SlowRequest                 // up to a minute, and so beyond the timeout
	LostRequest                 //
	LostAnswer                  //
	LateCAS                     // applied after its sender has given up
	Lag                         // of the standby
	NotDurable                  // a write that all can read and the standby does not have
	Failover                    // to a standby that lacks some of these
	OldPrimary                  // a request to the primary that was replaced
	LineageFailed               // the store does not say where it is
	Restore                     // of the store from a backup, with a fence
	LateFence                   // the members are back before the fence
	HalfFence                   // a fence that is stopped and run again
	ShortFence                  // a fence that knows a shorter window than there was
	Fenced                      // a store that never went back
	Younger                     // the sequencer was created after the backup
	Clone                       // of a running process
	DetachedAll                 // and attached
	DestroyedAll                // and created again
	Changed                     // created again with another window, or purged and created with another layout
	OperatorLost                // an operator's request, or its answer
	ReusedAddress               // a hop comes to another member than it is for
	ForeignAddress              // a hop comes to a server of another store
	faults
)

var faultNames = [faults]string{
	"paused call", "late seal", "stopped", "crashed", "released", "clock step", "clock set", "clock drift", "clock skew",
	"clock in 2050", "clock a year ahead", "clock of whole seconds", "clock of the store", "partition", "outage", "slow request", "lost request", "lost answer", "late CAS",
	"lagging standby", "write not durable", "failover", "old primary", "lineage failed", "restore with fence", "late fence",
	"half a fence", "fence of too short a window", "fence alone", "younger than the backup", "clone", "detached all", "destroyed all", "configuration changed", "operator's request lost",
	"reused address", "foreign address",
}

// String is the fault in words.
func (f Fault) String() string { return faultNames[f] }

// Faults is the number of kinds.
const Faults = int(faults)

// disturb does something bad, and comes again.
func (w *world) disturb() {
	w.After(w.upTo(w.focus.Every), w.disturb)
	p := w.members[w.Rand.IntN(len(w.members))]
	if p.m == nil || p.loops {
		return
	}
	f := Fault(w.Rand.IntN(int(faults)))
	if w.Chance(0.05) {
		f = Restore // it takes two, one to make a backup
	}
	if of := w.focus.Faults; len(of) > 0 && w.Chance(0.5) {
		f = of[w.Rand.IntN(len(of))]
	}
	switch f {
	case Stopped:
		w.fault(f)
		p.stopped = w.Now + w.upTo(5*minute)
		p.disturbed = p.stopped
	case Crashed:
		w.fault(f)
		w.crash(p, w.upTo(minute))
	case Released:
		w.release(p)
	case ClockStep, ClockSet, Clock2050:
		w.disturbClock(p, f)
	case Partition:
		w.fault(f)
		p.cut = w.Now + w.upTo(3*minute)
	case Outage:
		w.fault(f)
		w.store.down = max(w.store.down, w.Now+w.upTo(2*minute))
	case Lag:
		if w.standby && !w.unfenced {
			w.store.lag()
		}
	case Restore:
		w.disturbStore()
	case Fenced:
		if w.Chance(0.3) {
			w.fault(Fenced)
			w.fence()
		}
	case Clone:
		w.clone(p)
	case DetachedAll, DestroyedAll, Changed:
		w.empty(f)
	}
}

// release has a member give its number back, and attach again.
func (w *world) release(p *member) {
	if !p.attached {
		return
	}
	w.fault(Released)
	p.attached, p.disturbed = false, w.Now
	w.step(p, grant.Event{Kind: grant.Release})
	w.alive(p, w.upTo(30*second), func() {
		p.attached, p.disturbed = true, w.Now
		w.step(p, grant.Event{Kind: grant.Attach})
	})
}

// disturbClock sets a member's clock wrong, and often right again.
func (w *world) disturbClock(p *member, f Fault) {
	if w.focus.Step != 0 && f == ClockStep {
		w.fault(f)
		p.offset, p.disturbed = w.upTo(2*w.focus.Step)-w.focus.Step, w.Now
		return
	}
	if !w.wild || f == Clock2050 && (p.id < 2 || w.res.Faults[f] > 1) {
		return // a number that was used in 2050 is of no use to others before
	}
	w.fault(f)
	p.disturbed = w.Now
	switch f {
	case ClockStep:
		p.offset += w.upTo(2*minute) - minute
	case ClockSet:
		p.offset += w.upTo(2*hour) - hour
	default:
		was := p.offset
		p.offset = in2050 - w.Now
		life := p.life
		w.After(w.upTo(minute), func() { // also while it is stopped
			if p.life == life {
				p.offset, p.disturbed = was, w.Now
			}
		})
	}
	if w.Chance(0.5) {
		w.After(w.upTo(5*minute), func() { p.offset, p.drift, p.disturbed = 0, 0, w.Now })
	}
}

const in2050 = 2_550_000_000 * second
