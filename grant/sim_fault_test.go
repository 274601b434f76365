package grant

// A fault is a kind of fault.
type fault int

// The kinds of faults.
const (
	pausedCall    fault = iota // between taking an ID and returning it
	lateSeal                   // between deciding to seal and sealing
	suspended                  // the whole process, for up to 5 minutes
	crashed                    // memory lost, and restarted
	released                   // the node ID is given back properly, and the process joins again
	clockStep                  // up to a minute
	clockSet                   // up to an hour
	clockDrift                 // of up to 200 ppm
	clockSkew                  // up to two minutes, all the time
	clock2050                  // for a while
	clockYear                  // a process that starts a year ahead, and soon ends
	clockCoarse                // it shows whole seconds
	storeClock                 // it is wrong
	partition                  // of one member from the store
	storeOutage                // of the store
	slowRequest                // up to a minute, and so beyond the timeout
	lostRequest                //
	lostAnswer                 //
	lateCAS                    // applied after its sender has given up
	lag                        // of the standby
	notDurable                 // a write that is visible to all but missing on the standby
	failover                   // to a standby that lacks some of these writes
	oldPrimary                 // a request to the replaced primary
	lineageFailed              // the store does not return its lineage
	restore                    // of the store from a backup, with a fence
	lateFence                  // the members are back before the fence
	halfFence                  // a fence that is interrupted and run again
	shortFence                 // a fence with a shorter window than there was
	fenced                     // of a store that never went back
	rollback                   // of the store, by a write or by long, and members use it before the fence
	younger                    // the sequencer was created after the backup
	clone                      // of a running process
	detachedAll                // and attached
	destroyedAll               // and created again
	changed                    // created again with another window, or purged and created with another layout
	windowed                   // a longer or shorter window, while members run
	operatorLost               // an operator's request, or its answer
	faults
)

var faultNames = [faults]string{
	"paused call", "late seal", "stopped", "crashed", "released", "clock step", "clock set", "clock drift", "clock skew",
	"clock in 2050", "clock a year ahead", "clock of whole seconds", "clock of the store", "partition", "outage", "slow request", "lost request", "lost answer", "late CAS",
	"lagging standby", "write not durable", "failover", "old primary", "lineage failed", "restore with fence", "late fence",
	"half a fence", "fence of too short a window", "fence alone", "rollback", "younger than the backup", "clone", "detached all", "destroyed all", "configuration changed", "window changed", "operator's request lost",
}

// String returns the fault in words.
func (f fault) String() string { return faultNames[f] }

// disturb causes a fault, and schedules the next one.
func (w *world) disturb() {
	w.After(w.upTo(w.focus.Every), w.disturb)
	p := w.members[w.Rand.IntN(len(w.members))]
	if p.m == nil || p.loops {
		return
	}
	f := fault(w.Rand.IntN(int(faults)))
	if w.Chance(0.05) {
		f = restore // the first backup must come before a restore
	}
	if of := w.focus.Faults; len(of) > 0 && w.Chance(0.5) {
		f = of[w.Rand.IntN(len(of))]
	}
	switch f {
	case suspended:
		w.fault(f)
		p.stopped = w.Now + w.upTo(5*minute)
		p.disturbed = p.stopped
	case crashed:
		w.fault(f)
		w.crash(p, w.upTo(minute))
	case released:
		w.leave(p)
	case clockStep, clockSet, clock2050:
		w.disturbClock(p, f)
	case partition:
		w.fault(f)
		p.cut = w.Now + w.upTo(3*minute)
	case storeOutage:
		w.fault(f)
		w.store.down = max(w.store.down, w.Now+w.upTo(2*minute))
	case lag:
		if w.standby && !w.unfenced {
			w.store.lag()
		}
	case restore:
		w.disturbStore()
	case fenced:
		if w.Chance(0.3) {
			w.fault(fenced)
			w.fence()
		}
	case rollback:
		w.rollBackSoon()
	case clone:
		w.clone(p)
	case windowed:
		w.setWindow()
	case detachedAll, destroyedAll, changed:
		w.empty(f)
	}
}

// leave makes a member give its node ID back, and join again.
func (w *world) leave(p *member) {
	if !p.wanted {
		return
	}
	w.fault(released)
	p.wanted, p.disturbed = false, w.Now
	w.step(p, event{Kind: eventLeave})
	w.alive(p, w.upTo(30*second), func() {
		p.wanted, p.disturbed = true, w.Now
		w.step(p, event{Kind: eventJoin})
	})
}

// disturbClock sets a member's clock wrong, and often right again.
func (w *world) disturbClock(p *member, f fault) {
	if w.focus.Step != 0 && f == clockStep {
		w.fault(f)
		p.offset, p.disturbed = w.upTo(2*w.focus.Step)-w.focus.Step, w.Now
		return
	}
	if !w.wild || f == clock2050 && (p.id < 2 || w.res.Faults[f] > 1) {
		return // a node ID that was used in 2050 is useless to others before then
	}
	w.fault(f)
	p.disturbed = w.Now
	switch f {
	case clockStep:
		p.offset += w.upTo(2*minute) - minute
	case clockSet:
		p.offset += w.upTo(2*hour) - hour
	default:
		was := p.offset
		p.offset = in2050 - w.Now
		life := p.life
		w.After(w.upTo(minute), func() { // even while it is stopped
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
