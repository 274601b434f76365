package grant

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn"
)

const (
	fleetName   = "fleet"
	fleetBegins = int64(1_795_132_800_000) // ms: 2026-11-20
)

// A fleetWorld is a run of a large fleet of processes that share one sequencer
// and one store: a start of all at once, a rollout, outages of the store and
// what comes after them. It counts what the store is asked in every second, and
// how long who stands without an ID. The store takes its time for every request,
// first come first served. A world has few processes and all kinds of faults,
// here it is the other way round; what it holds is held here too.
type fleetWorld struct {
	kernel // Now is in µs since begins

	plan   plan
	layout firn.Layout
	window int64 // ms
	report report
	step   *stepReport // in progress
	from   int64       // when it began

	store     fleetStore
	prefix    string // of the keys of records
	keys      []string
	configKey string

	running []*fleetProcess // the newest one for each place in the fleet
	without int             // processes without IDs
	toCome  int             // future replacements
	ids     []firn.ID
}

// after schedules do for d from now.
func (w *fleetWorld) after(d time.Duration, do func()) { w.After(d.Microseconds(), do) }

// upTo returns a random duration.
func (w *fleetWorld) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.Rand.Int64N(int64(d) + 1))
}

// until runs the world until a moment, or until done returns true.
func (w *fleetWorld) until(end int64, done func() bool) {
	for w.Violation == "" && !done() && w.Next(end) {
	}
	if !done() && w.Violation == "" {
		w.Now = end
	}
}

// runPlan runs a plan. Its errors are errors in the plan.
func runPlan(p plan) (report, error) {
	w := &fleetWorld{kernel: newKernel(p.Seed, 0xf1ee7, 0), plan: p}
	if p.Window == 0 {
		w.plan.Window = defaultWindow
	}
	w.window = w.plan.Window.Milliseconds()
	w.report.Plan = w.plan
	var err error
	if w.layout, err = p.layout(); err != nil {
		return w.report, err
	}
	most := int(w.layout.MaxNode())
	w.store.records, w.store.marks = make([][]byte, most+1), make([]mark, most+1)
	w.prefix = "v1/" + fleetName + "/n/"
	digits := len(fmt.Sprint(most))
	for n := range most + 1 {
		w.keys = append(w.keys, fmt.Sprintf("%s%0*d", w.prefix, digits, n))
	}
	config := newConfig(w.layout, w.plan.Window)
	if _, err := Create(context.Background(), fleetOperator{w}, fleetName, config, time.UnixMilli(fleetBegins)); err != nil {
		return w.report, err
	}

	// All processes start.
	w.do(step{Name: "start", Lasts: p.StartOver, Settle: time.Hour}, func() {
		for place := range p.Processes {
			w.running = append(w.running, nil)
			w.toCome++
			w.after(w.upTo(p.StartOver), func() { w.start(place, nil) })
		}
	})
	for _, s := range p.Steps {
		w.do(s, func() {
			switch {
			case s.Replace != nil:
				w.replaceAll(*s.Replace, s.Lasts)
			case s.Outage:
				w.store.down = true
				w.after(s.Lasts, func() { w.store.down = false })
			}
		})
	}
	w.finish()
	w.report.Violation = w.Violation
	return w.report, nil
}

// do does a step.
func (w *fleetWorld) do(s step, begin func()) {
	if w.Violation != "" {
		return
	}
	w.report.Steps = append(w.report.Steps, stepReport{Name: s.Name, WithoutMost: w.without})
	number := len(w.report.Steps) - 1
	w.step = &w.report.Steps[number]
	w.from = w.Now
	begin()
	end := w.Now + s.Lasts.Microseconds()
	w.until(end, func() bool { return false })
	if s.Settle > 0 {
		w.until(end+s.Settle.Microseconds(), func() bool {
			return w.without == 0 && w.toCome == 0
		})
	}
	if rest := w.Now % 1e6; rest > 0 { // each second belongs to one step
		w.until(w.Now+1e6-rest, func() bool { return false })
	}
	w.step.Lasted = time.Duration(w.Now-w.from) * time.Microsecond
	w.step.Without = w.without
	w.step.Settled = w.without == 0
	seconds := float64(w.Now-w.from) / 1e6
	for k, n := range w.step.Count {
		if fleetKind(k).IsWrite() {
			w.step.Writes.Mean += float64(n) / max(seconds, 1)
		} else {
			w.step.Reads.Mean += float64(n) / max(seconds, 1)
		}
	}
	for second := w.from / 1e6; second < w.Now/1e6 && second < int64(len(w.store.seconds)); second++ {
		w.step.Reads.Peak = max(w.step.Reads.Peak, float64(w.store.seconds[second].reads))
		w.step.Writes.Peak = max(w.step.Writes.Peak, float64(w.store.seconds[second].writes))
	}
	if w.plan.Told != nil {
		told := *w.step
		told.Waits = sorted(slices.Clone(told.Waits))
		w.plan.Told(told)
	}
}

// finish checks all IDs once more, and ends the waits that have no end.
func (w *fleetWorld) finish() {
	for _, p := range w.running {
		if p != nil && p.since >= 0 {
			w.waited(p)
		}
	}
	for i := range w.report.Steps {
		sorted(w.report.Steps[i].Waits)
	}
	w.report.IDs = len(w.ids)
	slices.Sort(w.ids)
	for i := 1; i < len(w.ids); i++ {
		if w.ids[i] == w.ids[i-1] {
			w.Fail("repeated: %v was made twice", w.ids[i])
		}
	}
}

// replaceAll replaces every process, in any order, at even intervals.
func (w *fleetWorld) replaceAll(r rollout, over time.Duration) {
	w.toCome += len(w.running)
	for i, place := range w.Rand.Perm(len(w.running)) {
		w.after(time.Duration(float64(over)*float64(i)/float64(len(w.running))), func() {
			old := w.running[place]
			end := func(then func()) {
				if w.Chance(r.Crash) {
					w.crash(old)
					then()
					return
				}
				w.stop(old, then)
			}
			if r.Surge {
				w.start(place, func() { end(func() {}) })
				return
			}
			end(func() { w.after(r.Gap, func() { w.start(place, nil) }) })
		})
	}
}
