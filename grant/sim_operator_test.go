package grant

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"time"
)

func (w *world) time() time.Time { return time.UnixMicro(w.Now) }

// admin returns the options of an operator, whose clock is right.
func (w *world) admin() *WaitOptions { return &WaitOptions{Now: w.time} }

// create creates the sequencer at the beginning of the world.
func (w *world) create() {
	w.announced(w.config)
	now := w.time()
	if w.Chance(0.5) {
		now = now.Add(-48 * time.Hour) // so that a fence does not consider it too young
	}
	if _, err := Create(done, operator{w, true}, simName, w.config, &CreateOptions{Now: func() time.Time { return now }}); err != nil {
		w.Fail("create: %v", err)
	}
	w.created(w.config)
}

func (w *world) created(c Config) {
	w.called(callCreate)
	w.config = c
	w.known = max(w.known, c.Window)
}

// announced records a configuration that members may soon read.
func (w *world) announced(c Config) {
	w.longest = max(w.longest, (c.MaxAhead + c.Window).Microseconds())
	w.widest = max(w.widest, c.Window)
}

// unclear reports whether an operator must repeat the command.
func unclear(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, ErrNotSent) || errors.Is(err, context.DeadlineExceeded)
}

// insist repeats an operation, as an operator would, until its result is clear.
// then gets the last error.
func (w *world) insist(do func() error, then func(error)) {
	w.operating = w.Now + 10*minute
	var again func()
	again = func() {
		err := do()
		if unclear(err) {
			w.operating = w.Now + 10*minute
			w.After(w.upTo(5*second), again)
			return
		}
		w.operating = w.Now
		then(err)
	}
	again()
}

// setWindow makes the window up to eight times longer or shorter.
func (w *world) setWindow() {
	if w.closing > w.Now || w.operating > w.Now || w.unfenced || w.focus.Window != 0 {
		return
	}
	c := w.config
	if c.Window = min(c.Window<<w.Rand.IntN(4), 10*time.Minute); w.Chance(0.5) {
		shortest := min(w.config.Window, 30*time.Second) // idle members lose shorter windows all the time
		c.Window = max(w.config.Window>>w.Rand.IntN(4), c.minWindow(), shortest).Truncate(time.Millisecond)
	}
	w.fault(windowed)
	w.announced(c)
	w.insist(func() error {
		if w.unfenced {
			return ErrNotSent
		}
		_, err := SetWindow(done, operator{w: w}, simName, c.Window)
		return err
	}, func(err error) {
		switch {
		case errors.Is(err, ErrDestroyed), errors.Is(err, ErrNotFound):
		case err != nil:
			w.Fail("a window of %v: %v", c.Window, err)
		default:
			// Windows of the old length still block node IDs of crashed
			// members.
			amiss := w.Now + 4*max(c.Window, w.config.Window).Microseconds() + minute
			for _, p := range w.members {
				p.disturbed = max(p.disturbed, amiss)
			}
			w.config.Window, w.known = c.Window, max(w.known, c.Window)
		}
	})
}

// empty makes all members give their node IDs back, and lets them continue a
// little later, perhaps after a change.
func (w *world) empty(f fault) {
	for k, v := range w.store.values {
		if strings.HasPrefix(k, simPrefix) && w.of(v).Until*simMS > w.Now+2*w.window()+2*second {
			return // a clock in 2050 wrote it: it would wait until then
		}
	}
	if w.closing > w.Now || w.operating > w.Now || w.unfenced {
		return
	}
	w.fault(f)
	w.finish(f)
}

// finish moves the sequencer to its last state: detached or destroyed.
func (w *world) finish(f fault) {
	w.closing = w.Now + year
	w.insist(func() error {
		if w.unfenced {
			return ErrNotSent
		}
		call := Destroy
		if f == detachedAll {
			call = Detach
		}
		_, err := call(done, operator{w: w}, simName, w.admin()) // one step at a time: an operation that waits is called again
		if errors.Is(err, context.Canceled) {
			err = errLost
		}
		return err
	}, func(err error) {
		switch {
		case errors.Is(err, ErrDestroyed), errors.Is(err, ErrNotFound):
			return // the store went back, and attend handles its current state
		case err != nil:
			w.Fail("%v: %v", f, err)
			return
		}
		w.called(map[bool]simCall{true: callDetach, false: callDestroy}[f == detachedAll])
		w.ended, w.closing = true, w.Now+20*second
		w.operating = w.Now + 10*minute
		w.After(w.upTo(10*second), func() { w.revive(f) })
	})
}

// revive makes a sequencer usable again after it was detached or destroyed.
func (w *world) revive(f fault) {
	w.ended = false
	if f == detachedAll {
		w.insist(func() error { return w.attachAll() }, func(error) {})
		return
	}
	c := w.config
	purge := false
	if f == changed {
		if c = w.anyConfig(formatFor(c.Layout)); w.Chance(0.3) {
			purge = true
			c = w.anyConfig(w.anyFormat())
		}
		if w.focus.Format != "" {
			purge = false
			c = w.anyConfig(w.format)
		}
	}
	w.announced(c)
	w.insist(func() error {
		if w.unfenced {
			return ErrNotSent
		}
		if purge {
			if _, err := Purge(done, operator{w: w}, simName); err != nil {
				return err
			}
			w.called(callPurge)
		}
		_, err := Create(done, operator{w: w}, simName, c, &CreateOptions{Now: w.time})
		return err
	}, func(err error) {
		if err == nil {
			w.created(c)
		}
	})
}

func (w *world) attachAll() error {
	if w.unfenced {
		return ErrNotSent
	}
	_, err := Attach(done, operator{w: w}, simName)
	if err == nil {
		w.called(callAttach)
	}
	return err
}

// attend looks after the sequencer: if the store went back, no operator may be
// working on its state.
func (w *world) attend() {
	w.After(minute, w.attend)
	if s := w.store; w.operating > w.Now || w.unfenced || s.down > w.Now || s.standby != nil || s.old != nil {
		return
	}
	info, err := Lookup(done, operator{w, true}, simName)
	if err != nil {
		w.Fail("lookup: %v", err)
		return
	}
	w.config = info.Config
	if (w.besieged || w.wild) && w.Chance(0.3) {
		w.repair()
	}
	switch info.State {
	case Attached:
		w.closing = min(w.closing, w.Now)
	case Detaching, Detached:
		w.revive(detachedAll)
	case Destroying:
		w.finish(destroyedAll)
	default:
		w.revive(destroyedAll)
	}
}

// repair gives back what wrong clocks have blocked.
func (w *world) repair() {
	w.insist(func() error {
		if w.unfenced {
			return ErrNotSent
		}
		report, err := Repair(done, operator{w: w}, simName, &RepairOptions{Now: w.time})
		if err == nil && len(report.Nodes) > 0 {
			w.called(callRepair)
		}
		return err
	}, func(err error) {
		if err != nil {
			w.Fail("repair: %v", err)
		}
	})
}

// disturbStore makes a backup, or restores the last one.
func (w *world) disturbStore() {
	if w.wild || w.besieged || w.unfenced {
		return
	}
	if w.store.backup == nil || w.Chance(0.3) && !w.focus.Brief {
		if w.focus.Brief { // the restore comes soon
			w.After(w.upTo(3*w.window()), w.restore)
		}
		w.store.save()
		return
	}
	if !w.focus.Brief {
		w.restore()
	}
}

// restore restores the backup, and has it fenced. Clients are cut off before,
// and come back after the fence, or before it if they will detect the restore.
func (w *world) restore() {
	s := w.store
	if w.unfenced || s.backup == nil {
		return
	}
	w.fault(restore)
	w.ended = false // it may not have ended yet when the backup was made
	b := s.backup
	if !w.byHand && !w.focus.Brief && w.Chance(0.5) {
		b = s.first
	}
	s.restore(b)
	w.unfenced = true
	if info, err := Lookup(done, operator{w, true}, simName); err == nil {
		w.config = info.Config
	}
	away := w.upTo(30 * second)
	if w.focus.Brief {
		away = w.upTo(200 * simMS)
	}
	late := int64(0)
	s.down = w.Now + year
	if w.allKnow(b) {
		w.fault(lateFence)
		late, away = w.upTo(2*minute), 0
		s.down = w.Now + 2*second
	}
	for _, p := range w.members {
		p.disturbed = w.Now + 4*w.window() + minute
	}
	if w.byHand {
		w.fenceNow()
		s.down = w.Now + away
		return
	}
	w.After(late, func() {
		w.insist(w.fenceNow, func(err error) {
			if err != nil {
				w.Fail("fence: %v", err)
			}
			s.down = min(s.down, w.Now+away)
			w.fenced = max(s.down, w.Now)
			for _, p := range w.members {
				p.disturbed = w.Now + 4*w.window() + minute
			}
		})
	})
}

// rollBackSoon makes the store go back to its current state a little later, or
// after some windows.
func (w *world) rollBackSoon() {
	if w.wild || w.besieged || w.lineage || w.standby {
		return
	}
	b := w.store.snapshot()
	in := w.upTo(w.window() / 2)
	if w.Chance(0.7) {
		in = w.window() + w.upTo(4*w.window())
	}
	w.After(in, func() { w.rollBack(b) })
}

// rollBack makes the store go back to an earlier state. Members continue to use
// it, and some start anew, until an operator fences it some windows later.
// Until then IDs repeat; members that find another's window in their own must
// stop.
func (w *world) rollBack(b *backup) {
	s := w.store
	if w.unfenced || s.down > w.Now || w.closing > w.Now || w.ended || w.operating > w.Now || len(w.cloned) > 0 || !bytes.Equal(b.values[simConfigKey], s.values[simConfigKey]) {
		return
	}
	w.fault(rollback)
	s.restore(b)
	w.unfenced, w.open, w.repeats = true, true, math.MaxInt64
	for i, p := range w.members {
		p.disturbed = w.Now + 8*w.window() + minute
		if p.m != nil && i%2 == 1 {
			w.crash(p, w.upTo(second))
		}
	}
	w.After(w.window()+w.upTo(2*w.window()), func() {
		w.insist(w.fenceNow, func(err error) {
			if err != nil {
				w.Fail("fence: %v", err)
			}
			w.open, w.repeats, w.fenced = false, w.floor()*simMS, w.Now
		})
	})
}

// allKnow reports whether all members will detect that the store went back: it
// returns its lineage, and they have seen a later revision.
func (w *world) allKnow(b *backup) bool {
	for _, p := range w.members {
		if p.m != nil && p.revision <= b.revision {
			return false
		}
	}
	return w.lineage && !w.byHand
}

// fence fences a sequencer whose store never went back.
func (w *world) fence() {
	if w.unfenced {
		return
	}
	for _, p := range w.members {
		p.disturbed = w.Now + 4*w.window() + minute
	}
	w.insist(func() error {
		if w.unfenced {
			return ErrNotSent
		}
		return w.fenceNow()
	}, func(err error) {
		if err != nil {
			w.Fail("fence: %v", err)
		}
	})
}

// fenceNow fences the sequencer at this moment.
func (w *world) fenceNow() error {
	o := &FenceOptions{Now: w.time, AnyClock: w.wild || w.besieged, DryRun: true}
	s := operator{w, w.byHand}
	report, err := Fence(done, s, simName, o)
	if errors.Is(err, ErrNotFound) {
		w.fault(younger)
		c := w.anyConfig(formatFor(w.config.Layout))
		w.announced(c)
		if _, err = Create(done, s, simName, c, &CreateOptions{Now: w.time}); err == nil {
			w.created(c)
			report, err = Fence(done, s, simName, o)
		}
	}
	if err == nil {
		o.DryRun = false
		switch {
		case report.Unsure != "":
			o.LongestWindow = w.widest // only people know it
		case w.known >= w.widest:
		case w.Chance(0.3):
			o.LongestWindow = w.widest
		default:
			w.fault(shortFence)
		}
		if _, err = Fence(done, s, simName, o); errors.Is(err, ErrUnsure) { // the record is another one by now
			o.LongestWindow = w.widest
			_, err = Fence(done, s, simName, o)
		}
	}
	if err != nil {
		w.fault(halfFence)
		return err
	}
	w.called(callFence)
	w.checkFence(max(w.known, o.LongestWindow) >= w.widest)
	w.known = max(w.known, o.LongestWindow)
	w.unfenced, w.fenced = false, w.Now
	return nil
}
