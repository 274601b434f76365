package grant_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// TestFleet verifies the statements of docs/scale.md about fleets.
func TestFleet(t *testing.T) {
	processes, thousand, windows := 1<<9, 1000, []time.Duration{time.Minute}
	switch {
	case os.Getenv("FIRN_SOAK") != "":
		processes, windows = 1<<16, append(windows, 10*time.Minute)
	case os.Getenv("FIRN_ALL") != "":
		processes = 1 << 11
	case testing.Short():
		processes, thousand = 1<<8, 250
	}
	t.Run("100 servers", func(t *testing.T) { testFleet(t, 100, time.Minute, etcd) })
	for _, window := range windows {
		t.Run(fmt.Sprint("window of ", window), func(t *testing.T) { testFleet(t, processes, window, etcd) })
		t.Run(fmt.Sprint("Kubernetes, window of ", window), func(t *testing.T) { testFleet(t, thousand, window, kubernetes) })
	}
}

// testFleet runs processes with two to four times as many node IDs. All start
// at once, are replaced one after the other within five minutes, and all at
// once; the store is down for a third of the window, and for longer than the
// window.
func testFleet(t *testing.T, processes int, window time.Duration, store pace) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{window: window, pace: store, ends: make([]func(bool), processes)}
		bits := 1 + bits.Len(uint(processes-1))
		layout := fmt.Sprintf("bits=time:41.node:%d.seq:%d,epoch=1990-01-01T00:00:00Z", bits, 22-bits)
		c := config(layout)
		c.Window = window
		create(t, &f.mem, "s", c, time.Now())
		n, want := float64(processes), 3*float64(processes)/window.Seconds()
		var steps []*stepReport
		step := func(name string, lasts time.Duration, do func()) *stepReport {
			steps = append(steps, f.do(t, name, lasts, do))
			return steps[len(steps)-1]
		}
		step("start", 0, func() {
			for place := range f.ends {
				f.start(place)
			}
		})
		step("settling", window, nil)
		// 3N/W writes. A read of the lineage comes with each, and with each read
		// of the configuration, of which there is one in 15 to 20 seconds.
		s := step("running", 3*window, nil)
		if math.Abs(s.writes.mean/want-1) > 0.05 || s.reads.mean < want+n/20 || s.reads.mean > want+2*n/15 || s.without > 0 {
			t.Errorf("%v; want %.0f writes and %.0f to %.0f reads in a second", s, want, want+n/20, want+2*n/15)
		}
		// Replaced processes wait for some round trips, and few claims are
		// refused.
		s = step("rollout", 5*time.Minute, func() { f.replace(5 * time.Minute) })
		if s.wait(0.99) > time.Second || s.lists > 0 || s.refused > processes/100 {
			t.Errorf("%v; want IDs within a second, and no lists", s)
		}
		step("restart", 0, func() { f.replace(0) })
		step("running on", window, nil)
		// The attempts of a process are at least half of the longest wait apart,
		// so the peak is bounded; it is also bounded by the capacity of the store.
		peak := min(n/2.5+2*want, 1/store.write.Seconds())
		for _, outage := range []struct {
			lasts   time.Duration
			without int // processes
		}{
			// All have at least 60 % of a window when an outage begins, except
			// those that have just started to renew.
			{window / 3, 0},
			{window + window/4, processes},
		} {
			s = step(fmt.Sprint("outage of ", outage.lasts), outage.lasts, func() { f.outage(outage.lasts) })
			if s.without != outage.without {
				t.Errorf("%v; want %d", s, outage.without)
			}
			if s = step("after it", window, nil); s.writes.peak > peak {
				t.Errorf("%v: want at most %.0f writes in a second", s, peak)
			}
		}
		for _, end := range f.ends {
			end(false)
		}
		f.processes.Wait()
		if f.alarms != 0 {
			t.Errorf("%d alarms, and nothing happened that asks for one", f.alarms)
		}
		slices.Sort(f.ids)
		if unique := slices.Compact(slices.Clone(f.ids)); len(unique) < len(f.ids) {
			t.Errorf("%d IDs were made twice", len(f.ids)-len(unique))
		}
		for _, s := range steps { // the time until all had IDs is known now
			t.Logf("report: fleet of %d, %d node IDs, window of %v: %v", processes, 1<<bits, window, s)
		}
		t.Logf("report: fleet of %d: %d IDs checked", processes, len(f.ids))
	})
}

// A pace is the speed of a store that does one thing at a time.
type pace struct {
	way   time.Duration // of a request, and of its answer: half to three halves of this, at random
	read  time.Duration // a read of any number of keys
	key   time.Duration // each key of a read or a list, in addition
	write time.Duration // a compare-and-swap, applied or not
}

var (
	// etcd is roughly the pace of an etcd with three members on two shared
	// cores; see docs/scale.md.
	etcd = pace{250 * time.Microsecond, 60 * time.Microsecond, time.Microsecond, 120 * time.Microsecond}

	// kubernetes is roughly the pace of an API server and its etcd on two
	// shared cores, where each key is a request, and a compare-and-swap two.
	kubernetes = pace{500 * time.Microsecond, 350 * time.Microsecond, 350 * time.Microsecond, 1100 * time.Microsecond}
)

// A fleet is many processes that share one sequencer and one store, which takes
// its time for each request, first come first served, and counts them.
type fleet struct {
	pace
	window    time.Duration
	mem       memstore.Store
	processes sync.WaitGroup
	ends      []func(crash bool) // of the process in each place

	mu      sync.Mutex // guards the fields below
	busy    time.Time  // with earlier requests until then
	down    time.Time  // the store refuses all requests until then
	step    *stepReport
	without int // processes without IDs
	toCome  int // future processes
	ids     []firn.ID
	alarms  uint64
}

// do does a step. It lasts until a whole second in which all processes have
// IDs, unless the store is down.
func (f *fleet) do(t *testing.T, name string, lasts time.Duration, do func()) *stepReport {
	s := &stepReport{name: name, began: time.Now(), seconds: make(map[int64]*[2]float64)}
	f.mu.Lock()
	f.step = s
	f.mu.Unlock()
	if do != nil {
		do()
	}
	time.Sleep(lasts)
	for settled := false; !settled; time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) {
		f.mu.Lock()
		settled = f.without+f.toCome == 0 || lasts > 0 && !f.down.Before(s.began)
		f.mu.Unlock()
		if !settled && time.Since(s.began) > lasts+time.Hour {
			t.Fatalf("%v: %d processes have no IDs", s, f.without)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.lasted = time.Since(s.began)
	for _, n := range s.seconds {
		s.reads = rate{s.reads.mean + n[0]/s.lasted.Seconds(), max(s.reads.peak, n[0])}
		s.writes = rate{s.writes.mean + n[1]/s.lasted.Seconds(), max(s.writes.peak, n[1])}
	}
	return s
}

// outage makes the store refuse all requests for a while.
func (f *fleet) outage(lasts time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = time.Now().Add(lasts)
}

// replace replaces every process, in any order, at even intervals: 2 % crash,
// and the others give their node ID back.
func (f *fleet) replace(over time.Duration) {
	f.mu.Lock()
	f.toCome += len(f.ends)
	f.mu.Unlock()
	for i, place := range rand.Perm(len(f.ends)) {
		time.AfterFunc(over/time.Duration(len(f.ends))*time.Duration(i), func() {
			f.ends[place](rand.Float64() < 0.02)
			time.AfterFunc(2*time.Second, func() {
				f.mu.Lock()
				f.toCome--
				f.mu.Unlock()
				f.start(place)
			})
		})
	}
}

// start starts a process, which makes an ID twelve times in a window, and when
// it ends. Its clock is wrong by up to 20 ms.
func (f *fleet) start(place int) {
	ctx, end := context.WithCancel(context.Background())
	l := &link{fleet: f}
	f.ends[place] = func(crash bool) { l.dead.Store(crash); end() }
	wrong := time.Duration(rand.Int64N(41)-20) * time.Millisecond
	o := &sequencer.Options{WaitForNode: true, MustExist: true, Now: func() time.Time { return time.Now().Add(wrong) }}
	has := f.waits()
	f.processes.Go(func() {
		q, err := sequencer.Open(ctx, l, "s", o)
		for ; err != nil && ctx.Err() == nil; q, err = sequencer.Open(ctx, l, "s", o) {
			_ = pause(ctx, time.Second+time.Duration(rand.Int64N(int64(time.Second))))
		}
		for ctx.Err() == nil {
			id, err := q.TryNext()
			if err != nil && has == nil {
				has = f.waits()
			}
			if err != nil {
				id, err = q.Next(ctx)
			}
			if err == nil {
				f.mu.Lock()
				f.ids = append(f.ids, id)
				f.mu.Unlock()
			}
			if err == nil && has != nil {
				has()
				has = nil
			}
			_ = pause(ctx, max(min(f.window/12, time.Until(q.Status().Until)), time.Millisecond))
		}
		if has != nil {
			has() // it needs none
		}
		if q != nil {
			closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if l.dead.Load() {
				cancel()
			}
			_ = q.Close(closing)
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, n := range q.Stats().Keeper.Alarms {
				f.alarms += n
			}
		}
	})
}

// waits records that a process has no IDs from now on. It calls has when it has
// some again.
func (f *fleet) waits() (has func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, since := f.step, time.Now()
	f.without++
	s.without++
	s.most = max(s.most, f.without)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		s.waits = append(s.waits, time.Since(since))
		if f.without--; f.without == 0 {
			f.step.all = time.Since(f.step.began)
		}
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A link is the store of a fleet as one process reaches it.
type link struct {
	*fleet
	dead atomic.Bool // the process has crashed
}

// request does one, if it is answered before ctx ends.
func (l *link) request(ctx context.Context, kind grant.Request, do func() (keys int, err error)) error {
	way := func() time.Duration { return l.way/2 + time.Duration(rand.Int64N(int64(l.way)+1)) }
	if err := pause(ctx, way()); err != nil {
		return err
	}
	l.mu.Lock()
	turn := time.Now()
	if turn.Before(l.down) {
		l.mu.Unlock()
		return cmp.Or(pause(ctx, way()), grant.NotSent(errFault))
	}
	if l.busy.After(turn) {
		turn = l.busy
	}
	if end, limited := ctx.Deadline(); l.dead.Load() || limited && !turn.Before(end) {
		l.mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	}
	n := l.step.seconds[time.Now().Unix()]
	if n == nil {
		n = new([2]float64)
		l.step.seconds[time.Now().Unix()] = n
	}
	keys, err := do()
	if kind == grant.RequestCAS {
		n[1]++
		l.busy = turn.Add(l.write)
	} else {
		n[0]++
		l.busy = turn.Add(l.read + time.Duration(keys)*l.key)
	}
	back := l.busy.Add(way())
	l.mu.Unlock()
	return cmp.Or(pause(ctx, time.Until(back)), err)
}

func (l *link) Get(ctx context.Context, key string) (value []byte, err error) {
	err = l.request(ctx, grant.RequestGet, func() (int, error) {
		value, err = l.mem.Get(ctx, key)
		return 1, err
	})
	return value, err
}

func (l *link) GetMany(ctx context.Context, keys []string) (values [][]byte, err error) {
	err = l.request(ctx, grant.RequestGetMany, func() (int, error) {
		values, err = l.mem.GetMany(ctx, keys)
		return len(keys), err
	})
	return values, err
}

func (l *link) CAS(ctx context.Context, key string, old, next []byte) (applied bool, err error) {
	err = l.request(ctx, grant.RequestCAS, func() (int, error) {
		if applied, err = l.mem.CAS(ctx, key, old, next); !applied {
			l.step.refused++
		}
		return 1, err
	})
	return applied && err == nil, err
}

func (l *link) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	return l.request(ctx, grant.RequestList, func() (keys int, err error) {
		l.step.lists++
		err = l.mem.List(ctx, prefix, func(key string, value []byte) bool { keys++; return yield(key, value) })
		return keys, err
	})
}

func (l *link) Lineage(ctx context.Context) (string, int64, error) {
	return "one", 1, l.request(ctx, grant.RequestLineage, func() (int, error) { return 0, nil })
}

// Time returns the time in seconds, like an HTTP server.
func (l *link) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	err = l.request(ctx, grant.RequestTime, func() (int, error) {
		now = time.Now().Truncate(time.Second)
		return 0, nil
	})
	return now, time.Second, err
}

func (l *link) Close() error { return nil }

// A stepReport is the result of one step. No fields are set before its end but
// counts.
type stepReport struct {
	name           string
	began          time.Time
	lasted         time.Duration
	seconds        map[int64]*[2]float64 // reads and writes in each
	reads, writes  rate
	refused, lists int             // compare-and-swaps that were not applied, and reads of all records
	all            time.Duration   // until all processes had IDs, for the last time
	without, most  int             // processes whose time without IDs began, and without IDs at once
	waits          []time.Duration // and for how long, in ascending order in the end
}

// A rate is requests per second.
type rate struct{ mean, peak float64 }

// wait returns the wait that a part of the waits do not exceed: 0.5 is the
// median.
func (r *stepReport) wait(part float64) time.Duration {
	slices.Sort(r.waits)
	if len(r.waits) == 0 {
		return 0
	}
	return r.waits[min(len(r.waits)-1, int(part*float64(len(r.waits))))].Round(100 * time.Microsecond)
}

// String returns the report as a line.
func (r *stepReport) String() string {
	return fmt.Sprintf("%s, %v: reads %.0f/s, at most %.0f/s; writes %.0f/s, at most %.0f/s; %d refused; %d lists; "+
		"%d stood without IDs, %d at once, for %v (p50), %v (p99), %v (most); all had IDs after %v",
		r.name, r.lasted, r.reads.mean, r.reads.peak, r.writes.mean, r.writes.peak, r.refused, r.lists,
		r.without, r.most, r.wait(0.5), r.wait(0.99), r.wait(1), r.all.Round(100*time.Microsecond))
}
