package grant

import (
	"fmt"
	"time"
)

// A result is the result of a run.
type result struct {
	Seed     uint64
	World    string // the shape of the run, in words
	Hours    float64
	IDs      int
	Reserved int // pieces of more than 1000 IDs
	Renewals int
	Acquired int
	Alarms   int
	Faults   [faults]int
	Calls    [simCalls]int

	Tries  int // attempts to make an ID while the store was reachable, the clock sane and all else well
	Failed int // of these

	// The same in worlds in which a host whose clock is a year ahead restarts
	// repeatedly.
	BesiegedTries, BesiegedFailed int

	Trace     uint64 // hash of everything that happened
	Violation string // the first violation, or ""
}

// The world's time is in µs, as fine as the finest ticks require.
const (
	simMS  = int64(1000)
	second = 1000 * simMS
	minute = 60 * second
	hour   = 60 * minute
	year   = 365 * 24 * hour
)

const (
	processes  = 6
	simTimeout = 5 * second // of a request

	simName      = "s"
	simPrefix    = "v1/" + simName + "/n/" // of the keys of records
	simConfigKey = "v1/" + simName + "/config"
)

// A world is a run of the simulator: many members of a sequencer, their clocks,
// their network and their store, under faults of all kinds, one event at a
// time. It runs the protocol's own machine and real generators, so what it
// shows holds for them and not for a model. docs/protocol.md says what that is.
type world struct {
	kernel
	begins int64
	res    result

	// byHand makes requests wait until a test answers them, and excludes random
	// events: see TestHistoric.
	byHand bool

	shape
	focus focus

	store   *store
	config  Config        // of the sequencer at its last creation
	longest int64         // the longest MaxAhead + Window that it ever had, in µs
	widest  time.Duration // the longest Window
	known   time.Duration // the longest Window that the store knows of
	members []*member

	operating int64 // an operator is at work until then
	unfenced  bool  // the store went back, and was not fenced yet
	open      bool  // and members use it
	fenced    int64 // when members could reach the store after the last fence
	closing   int64 // until then, members may not hold a node ID, because the sequencer is being detached or destroyed
	ended     bool  // detach or destroy has returned, and no member may hold a node ID

	records
}

// A shape is the part of a world that is fixed for a run.
type shape struct {
	*format        // the first layout of the sequencer
	wild     bool  // clocks may do anything; a restore requires sane ones
	skewed   bool  // sane clocks differ by some seconds
	standby  bool  // the store has one, so writes are visible before they are durable
	lineage  bool  // the store detects that it went back
	besieged bool  // a host whose clock is a year ahead restarts repeatedly
	spoiled  bool  // the same, but it was allowed to take node IDs anyway
	clock    bool  // the store returns its time
	clockOff int64 // error of the store's clock
}

// A focus makes some faults frequent, and others close together, so that
// situations which need several of them happen soon. The checks are the same.
type focus struct {
	Faults []fault   // half of all are among these; if empty, all are equally frequent
	Calls  []simCall // half of all are among these
	World  string    // a shape, see shapes; "" means one of several
	Format string    // a layout, see formats; "" means one of several
	Begin  int64     // in µs; 0 means one of several
	Window int64     // of the sequencer, in ms; 0 means one of several
	Every  int64     // the longest time between two faults, in ms; 0 means 4 minutes
	Busy   int64     // the longest time between two calls, in ms; 0 means 10 seconds
	Step   int64     // the longest clock step, in ms, also at a restore; 0 means a minute, and none at a restore
	Paused float64   // the share of calls that are paused; 0 means one in a thousand
	Slow   float64   // the share of requests that are slow; 0 means one in a hundred
	Delay  int64     // the longest time that a slow one takes, in ms; 0 means a minute
	Coarse bool      // all clocks show whole seconds
	Brief  bool      // a restore is fast, and its backup is recent
}

func (f focus) fill() focus {
	for _, d := range []struct {
		field *int64
		usual int64
	}{{&f.Every, 240_000}, {&f.Busy, 10_000}, {&f.Delay, 61_000}} {
		if *d.field == 0 {
			*d.field = d.usual
		}
		*d.field *= simMS
	}
	f.Step *= simMS
	if f.Paused == 0 {
		f.Paused = 0.001
	}
	if f.Slow == 0 {
		f.Slow = 0.01
	}
	return f
}

// shapes are the worlds that a focus can name.
var shapes = map[string]shape{
	"":                 {},
	"wild":             {wild: true},
	"skewed":           {skewed: true},
	"standby":          {standby: true},
	"lineage":          {lineage: true},
	"lineage, standby": {lineage: true, standby: true},
	"besieged":         {besieged: true},
	"spoiled":          {wild: true, spoiled: true},
	"besieged, clock":  {besieged: true, clock: true},
}

// choose chooses the shape of a seed's run, and its beginning.
func (w *world) choose() {
	seed := w.res.Seed
	w.shape = shape{wild: seed%2 == 0 && !w.focus.Brief, skewed: seed%8 == 1, standby: seed%4 >= 2, lineage: seed%8 == 3, besieged: seed%16 == 5, spoiled: seed%16 == 4 && !w.focus.Brief}
	if w.focus.World != "" {
		w.shape = shapes[w.focus.World]
	}
	w.begins = begins
	switch seed % 8 {
	case 5:
		w.begins = -w.upTo(2 * hour) // so that 1970 comes soon
	case 6:
		w.begins = -3 * year
	case 7:
		w.begins = 0
	}
	if w.focus.Begin != 0 {
		w.begins = w.focus.Begin
	}
	if w.besieged {
		w.begins = begins
	}
	if w.focus.World == "" && w.Chance(0.5) {
		w.shape.clock = true
		if w.Chance(0.3) {
			w.fault(storeClock)
			w.clockOff = []int64{-year, -hour, -20 * second, 20 * second, hour, year}[w.Rand.IntN(6)]
		}
	}
	w.Now = w.begins
	w.format = w.anyFormat()
	if w.focus.Format != "" {
		w.format = formatOf(w.focus.Format)
	}
	w.config = w.anyConfig(w.format)
	if w.focus.Window != 0 {
		w.config.Window = max(time.Duration(w.focus.Window)*time.Millisecond, w.config.minWindow())
	}
	w.res.World = fmt.Sprintf("%s, window %v, from %v, %v", w.format.name, w.config.Window, stamp(w.begins), w.shape.words())
}

func (s shape) words() (all []string) {
	for _, is := range []struct {
		yes  bool
		what string
	}{{s.wild, "wild"}, {s.skewed, "skewed"}, {s.standby, "standby"}, {s.lineage, "lineage"}, {s.besieged, "besieged"}, {s.spoiled, "spoiled"}, {s.clock, "clock"}, {s.clockOff != 0, "wrong"}} {
		if is.yes {
			all = append(all, is.what)
		}
	}
	return all
}

func stamp(at int64) string { return time.UnixMicro(at).UTC().Format("2006-01-02T15:04:05.000000Z") }

// anyConfig returns a configuration for a layout.
func (w *world) anyConfig(f *format) Config {
	c := Config{Layout: f.layout, MaxAhead: f.ahead}
	windows := []time.Duration{5 * time.Second, 30 * time.Second, time.Minute, 10 * time.Minute}
	c.Window = max(windows[w.Rand.IntN(len(windows))], c.minWindow())
	return c
}

// window returns the length of a window in µs.
func (w *world) window() int64 { return w.config.Window.Microseconds() }

// begins is the beginning of most worlds: in 2001.
const begins = 1_000_000_000 * second

// runSim runs the world of a seed.
func runSim(seed uint64, hours int) result { return runWith(seed, hours, focus{}) }

// runWith is runSim with a focus.
func runWith(seed uint64, hours int, focus focus) result {
	w := newWorld(seed, focus)
	w.choose()
	if w.Chance(0.3) {
		w.store.save() // so that a restore may go back to before the sequencer existed
	}
	w.create()
	for i := range processes {
		p := newMember(i)
		p.pinned, p.upper = i == 0, i == 1
		w.members = append(w.members, p)
		w.After(w.upTo(2*second), func() { w.start(p) })
	}
	if w.besieged || w.spoiled {
		p := newMember(processes)
		p.loops = true
		w.members = append(w.members, p)
		w.loop(p)
	}
	w.After(w.upTo(min(minute, w.focus.Every)), w.disturb)
	w.After(minute, w.attend)
	end := w.Now + int64(hours)*hour
	for w.Violation == "" && w.Next(end) {
	}
	w.stalled()
	w.res.Hours = float64(hours)
	if w.Violation != "" {
		w.res.Hours = float64(w.Now-w.begins) / float64(hour)
	}
	w.res.Trace, w.res.Violation = w.Hash, w.Violation
	return w.res
}

func newWorld(seed uint64, focus focus) *world {
	w := &world{
		kernel: newKernel(seed, begins), begins: begins,
		focus: focus.fill(), records: newRecords(), operating: noTime, closing: noTime, fenced: noTime,
	}
	w.store = newStore(w)
	w.res.Seed = seed
	return w
}

func (w *world) upTo(n int64) int64 { return w.Rand.Int64N(n) + 1 }

func (w *world) fault(f fault)    { w.res.Faults[f]++ }
func (w *world) called(c simCall) { w.res.Calls[c]++ }
