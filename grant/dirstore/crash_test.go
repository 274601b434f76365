package dirstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/history"
)

// A scenario is what a few processes do concurrently. It is run in every order
// of their calls to the disk that the budgets allow. At every call the power
// may fail, leaving any of the states that the disk may have then.
type scenario struct {
	name      string
	initial   map[string]string // values that are durable when it begins
	processes [][]script        // the threads of each process

	preempts int // how often a thread is stopped although it could continue
	kills    int // how many processes are killed
	failures int // how many fsyncs fail
}

type script func(c *client)

// A client is a thread's access to the store. It records what it has seen.
type client struct {
	run   *simRun
	store *store
	by    string
}

// A record is an operation of a key, and whether it has returned.
type record struct {
	key      string
	op       history.Operation
	returned bool
	dropped  bool // it was not sent
}

func (c *client) begin(key string, op history.Operation) *record {
	op.By = c.by
	op.From = c.run.tick()
	r := &record{key: key, op: op}
	c.run.history = append(c.run.history, r)
	return r
}

func (c *client) end(r *record, err error) {
	r.op.To = c.run.tick()
	r.returned = true
	r.dropped = err != nil && (r.op.Kind == history.Get || errors.Is(err, grant.ErrNotSent))
	if err != nil && c.run.scenario.failures == 0 {
		c.run.errors = append(c.run.errors, fmt.Sprintf("%v: %v", r.op, err))
	}
}

func (c *client) get(key string) string {
	r := c.begin(key, history.Operation{Kind: history.Get})
	v, err := c.store.Get(context.Background(), key)
	r.op.Got = string(v)
	c.end(r, err)
	return string(v)
}

func (c *client) cas(key, old, next string) {
	r := c.begin(key, history.Operation{Kind: history.CAS, Old: old, Next: next})
	ok, err := c.store.CAS(context.Background(), key, []byte(old), []byte(next))
	switch {
	case err != nil:
		r.op.Outcome = history.Unknown
	case !ok:
		r.op.Outcome = history.Refused
	}
	c.end(r, err)
}

// list is equivalent to a Get of every key that it yields.
func (c *client) list(keys ...string) {
	records := make(map[string]*record)
	for _, key := range keys {
		records[key] = c.begin(key, history.Operation{Kind: history.Get})
	}
	err := c.store.List(context.Background(), "", func(key string, value []byte) bool {
		records[key].op.Got = string(value)
		return true
	})
	for _, r := range records {
		c.end(r, err)
	}
}

func scenarios() []scenario {
	a := map[string]string{"k": "A"}
	cas := func(key, old, next string) script { return func(c *client) { c.cas(key, old, next) } }
	get := func(key string) script { return func(c *client) { c.get(key) } }
	list := func(keys ...string) script { return func(c *client) { c.list(keys...) } }
	add := func(suffix string) script { return func(c *client) { v := c.get("k"); c.cas("k", v, v+suffix) } }
	// one returns processes with one thread each, which runs these scripts.
	one := func(processes ...[]script) (all [][]script) {
		for _, scripts := range processes {
			all = append(all, []script{func(c *client) {
				for _, do := range scripts {
					do(c)
				}
			}})
		}
		return all
	}
	type does = []script
	return []scenario{
		{
			name: "one process replaces and creates", initial: a, kills: 1, failures: 1,
			processes: one(does{
				cas("k", "A", "B"), cas("k", "A", "X"), cas("k", "B", "C"), cas("n", "", "N"), get("n"),
			}),
		},
		{
			name: "two processes replace", initial: a, preempts: 2, kills: 1,
			processes: one(does{cas("k", "A", "B")}, does{cas("k", "A", "C"), get("k")}),
		},
		{
			name: "two processes create", preempts: 2, kills: 1,
			processes: one(does{cas("n", "", "B")}, does{cas("n", "", "C"), get("n")}),
		},
		{
			name: "another reads, and acts on it", initial: a, preempts: 1, kills: 1,
			processes: one(does{cas("k", "A", "B")}, does{add("+"), get("k")}),
		},
		{
			name: "another is refused", initial: a, preempts: 1, kills: 1,
			processes: one(does{cas("k", "A", "B")}, does{cas("k", "A", "C")}),
		},
		{
			name: "another lists", initial: a, preempts: 1, kills: 1,
			processes: one(does{cas("k", "A", "B"), cas("n", "", "N")}, does{list("k", "n"), get("n")}),
		},
		{
			name: "an fsync fails, and another process continues", initial: a, preempts: 1, failures: 1,
			processes: one(does{cas("k", "A", "B"), get("k"), cas("k", "B", "C")}, does{add("+"), cas("k", "A", "D")}),
		},
		{
			name: "an fsync fails under two threads", initial: map[string]string{"k": "A", "m": "A"}, preempts: 2, failures: 1,
			processes: [][]script{{cas("k", "A", "B"), cas("m", "A", "B")}},
		},
		{
			name: "an fsync fails, and its process is killed", initial: a, preempts: 0, failures: 1, kills: 1,
			processes: one(does{cas("k", "A", "B")}, does{add("+")}),
		},
		{
			name: "three processes count", initial: map[string]string{"k": "0"}, preempts: 1,
			processes: one(does{add("a")}, does{add("b")}, does{add("c")}),
		},
	}
}

// A simRun is one order of one scenario.
type simRun struct {
	scenario scenario
	world    *simWorld
	explorer *explorer
	checker  *checker
	threads  []*simThread
	clock    int64
	history  []*record
	errors   []string // errors that no call should return
	trace    []string
}

func (r *simRun) tick() int64 {
	r.clock++
	return r.clock
}

// disk returns the disk as a process sees it.
func (r *simRun) disk(p *simProcess) *simDisk {
	return &simDisk{world: r.world, process: p, trace: func(call string) {
		r.trace = append(r.trace, p.name+": "+call)
	}}
}

// run runs one order of the calls, chosen by the explorer, and returns what is
// wrong with it.
func (r *simRun) run() error {
	r.world = storeWorld(r.scenario.initial)
	for n, scripts := range r.scenario.processes {
		p := &simProcess{name: fmt.Sprint("process ", n+1)}
		disk := r.disk(p)
		store, err := openDisk(context.Background(), disk, "simulated", false)
		if err != nil {
			return err
		}
		disk.threads = &simThreads{byGoroutine: make(map[string]*simThread)}
		for i, script := range scripts {
			t := &simThread{process: p, resume: make(chan simDecision)}
			r.threads = append(r.threads, t)
			if len(scripts) == 1 {
				disk.threads.only = t
			}
			c := &client{run: r, store: store, by: fmt.Sprintf("%s.%d", p.name, i+1)}
			go func() {
				defer t.done.Store(true)
				disk.threads.add(t)
				disk.step("start")
				script(c)
			}()
		}
	}
	r.trace = nil
	r.world.flush()
	preempts, kills, failures := r.scenario.preempts, r.scenario.kills, r.scenario.failures
	var last *simThread
	for {
		synctest.Wait()
		if err := r.checker.check(r); err != nil {
			return err
		}
		// A thread that waits for a lock tries again after a while.
		if slices.ContainsFunc(r.threads, func(t *simThread) bool {
			return t.waits.get() != "" && !t.done.Load() && t.at.get() == "" && (r.world.locks[t.waits.get()] == nil || t.process.dead.Load())
		}) {
			time.Sleep(10 * lastPause)
			synctest.Wait()
		}
		var ready []*simThread
		undone := false
		for _, t := range r.threads {
			undone = undone || !t.done.Load()
			if t.at.get() != "" {
				ready = append(ready, t)
			}
		}
		if !undone {
			return nil
		}
		if len(ready) == 0 {
			time.Sleep(10 * lastPause)
			synctest.Wait()
			if !slices.ContainsFunc(r.threads, func(t *simThread) bool { return t.at.get() != "" }) {
				return fmt.Errorf("no process can continue: a lock is never given back")
			}
			continue
		}
		// The first choice is to continue with the same thread.
		if i := slices.Index(ready, last); i > 0 {
			ready[0], ready[i] = ready[i], ready[0]
		}
		lastReady := ready[0] == last
		choices := 1
		if !lastReady || preempts > 0 {
			choices = len(ready)
		}
		switchTo := choices
		if failures > 0 && strings.HasPrefix(ready[0].at.get(), "sync ") {
			choices++ // the call fails
		}
		fails := choices
		if kills > 0 && ready[0].at.get() != "start" {
			choices++ // its process is killed
		}
		switch choice := r.explorer.choose(choices); {
		case choice < switchTo:
			if choice > 0 && lastReady {
				preempts--
			}
			last = ready[choice]
			last.waits.set("")
			last.resume <- goOn
		case choice < fails:
			failures--
			last = ready[0]
			r.trace = append(r.trace, "(the next one fails)")
			last.resume <- goOnAndFail
		default:
			kills--
			r.kill(ready[0].process)
			last = nil
		}
	}
}

// kill ends a process at once. Its changes to files stay.
func (r *simRun) kill(p *simProcess) {
	r.trace = append(r.trace, p.name+" is killed")
	p.dead.Store(true)
	r.world.mu.Lock()
	maps.DeleteFunc(r.world.locks, func(_ string, l *simLock) bool { return l.disk.process == p })
	r.world.mu.Unlock()
	for _, t := range r.threads {
		if t.process == p && t.at.get() != "" {
			t.resume <- die
		}
	}
}

// end lets all remaining goroutines of a run end.
func (r *simRun) end() {
	for range 100 {
		synctest.Wait()
		left := false
		r.world.mu.Lock()
		clear(r.world.locks)
		r.world.mu.Unlock()
		for _, t := range r.threads {
			t.process.dead.Store(true)
			left = left || !t.done.Load()
			if t.at.get() != "" {
				t.resume <- die
			}
		}
		if !left {
			return
		}
		time.Sleep(10 * lastPause)
	}
}

// An explorer visits all sequences of choices.
type explorer struct {
	choices, limits []int
	at              int
}

func (e *explorer) choose(n int) int {
	if e.at == len(e.choices) {
		e.choices = append(e.choices, 0)
		e.limits = append(e.limits, n)
	}
	e.at++
	return e.choices[e.at-1]
}

// next moves to the next sequence, if there is one.
func (e *explorer) next() bool {
	for n := len(e.choices) - 1; n >= 0; n-- {
		if e.choices[n]++; e.choices[n] < e.limits[n] {
			e.choices, e.limits, e.at = e.choices[:n+1], e.limits[:n+1], 0
			return true
		}
	}
	return false
}

// A checker checks what the disk may hold, once in each situation.
type checker struct {
	seen                       map[string]bool
	moments, states, recovered int
}

// check lets the power fail now, in every way, and checks the result.
func (ch *checker) check(r *simRun) error {
	if len(r.errors) > 0 {
		return fmt.Errorf("a call fails: %s", r.errors[0])
	}
	ops := make(map[string][]history.Operation)
	for key := range r.scenario.initial {
		ops[key] = nil
	}
	for _, rec := range r.history {
		op := rec.op
		switch {
		case !rec.returned && op.Kind == history.CAS:
			op.Outcome = history.Unknown
		case !rec.returned, rec.dropped:
			ops[rec.key] = ops[rec.key][:len(ops[rec.key]):len(ops[rec.key])]
			continue
		}
		ops[rec.key] = append(ops[rec.key], op)
	}
	text := fmt.Sprint(ops)
	if !ch.first(r.world.String() + text) {
		return nil
	}
	ch.moments++
	for _, state := range r.world.crashStates() {
		if !ch.first(state.text + text) {
			continue
		}
		ch.states++
		if err := ch.recover(r, state, ops, true); err != nil {
			return fmt.Errorf("the power fails, and leaves %s: %w", state.text, err)
		}
	}
	return nil
}

// first reports whether a situation is a new one.
func (ch *checker) first(situation string) bool {
	if ch.seen[situation] {
		return false
	}
	ch.seen[situation] = true
	return true
}

// recover opens a store on the contents of the disk, and checks that its values
// are consistent with what was seen before. If again is set, the power fails
// once more at every call meanwhile.
func (ch *checker) recover(r *simRun, state simState, ops map[string][]history.Operation, again bool) error {
	ch.recovered++
	w := newWorld(state.files)
	ops = maps.Clone(ops)
	text := fmt.Sprint(ops)
	reading := again
	var failure error
	failsAgain := func(string) {
		if !reading || failure != nil || !ch.first(w.String()+text) {
			return
		}
		for _, state := range w.crashStates() {
			if !ch.first(state.text + text) {
				continue
			}
			if err := ch.recover(r, state, ops, false); err != nil {
				failure = fmt.Errorf("the power fails again meanwhile, and leaves %s: %w", state.text, err)
				return
			}
		}
	}
	disk := &simDisk{world: w, trace: failsAgain}
	s, err := openDisk(context.Background(), disk, "simulated", false)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	ctx := context.Background()
	now := r.clock
	values := make(map[string][]byte)
	for key, before := range ops {
		values[key], err = s.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("get %q: %w", key, err)
		}
		// From now on this must stay, whatever happens.
		ops[key] = append(before[:len(before):len(before)], history.Operation{
			Kind: history.Get, Got: string(values[key]), From: now + 1, To: now + 2, By: "after the crash",
		})
		initial := r.scenario.initial[key]
		if !history.Linearizable(initial, ops[key]) {
			return fmt.Errorf("key %q, which %s", key, history.Format(initial, ops[key]))
		}
		text = fmt.Sprint(ops)
	}
	failsAgain("")
	reading = false
	for key, v := range values {
		if ok, err := s.CAS(ctx, key, v, []byte("after")); !ok || err != nil {
			return fmt.Errorf("CAS from what was read after the crash = %v, %w", ok, err)
		}
	}
	n := 0
	err = s.List(ctx, "", func(_ string, value []byte) bool {
		n++
		return string(value) == "after"
	})
	if err != nil || n != len(ops) {
		return fmt.Errorf("after the crash List yields %d keys, want %d, and returns %v", n, len(ops), err)
	}
	return failure
}

// explore visits all orders of a scenario, until one is wrong.
func explore(t *testing.T, sc scenario, ch *checker) (orders int, err error) {
	synctest.Test(t, func(t *testing.T) {
		e := new(explorer)
		for {
			orders++
			r := &simRun{scenario: sc, explorer: e, checker: ch}
			if err = r.run(); err != nil {
				err = fmt.Errorf("%w\ncalls:\n\t%s", err, strings.Join(r.trace, "\n\t"))
				// The state ends here; let all goroutines end.
				r.end()
				return
			}
			if !e.next() {
				return
			}
		}
	})
	return orders, err
}

// TestCrashStates checks every state that a loss of power may leave, at every
// call of a few processes to the disk, in every order: everything acknowledged
// or seen is present, and everything else is either complete or absent.
//
// With FIRN_SOAK set there are more orders, and it takes some minutes.
func TestCrashStates(t *testing.T) {
	var mu sync.Mutex
	var total checker
	var orders int
	t.Run("scenarios", func(t *testing.T) {
		for _, sc := range scenarios() {
			t.Run(sc.name, func(t *testing.T) {
				t.Parallel()
				switch {
				case os.Getenv("FIRN_SOAK") != "":
					sc.preempts++
					sc.kills = 1
				case testing.Short():
					sc.preempts = min(sc.preempts, 1)
				}
				ch := &checker{seen: make(map[string]bool)}
				n, err := explore(t, sc, ch)
				if err != nil {
					t.Error(err)
				}
				t.Logf("%d orders, %d moments, %d crash states, %d recoveries", n, ch.moments, ch.states, ch.recovered)
				mu.Lock()
				defer mu.Unlock()
				orders += n
				total.moments += ch.moments
				total.states += ch.states
				total.recovered += ch.recovered
			})
		}
	})
	if !t.Failed() {
		t.Logf("report: directory store in %d scenarios, %d orders of calls: %d moments of power loss, %d different crash states, %d recoveries, all right",
			len(scenarios()), orders, total.moments, total.states, total.recovered)
	}
}
