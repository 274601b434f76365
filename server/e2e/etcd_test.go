//go:build unix

package e2e

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/firnid/firn"
	"github.com/firnid/firn/etcdstore"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/e2e/etcdtest"
	"github.com/firnid/firn/server/stores"
)

// What a process of a test is told, by its environment.
const (
	workerURL   = "FIRN_E2E_STORE"
	workerLog   = "FIRN_E2E_LOG"
	workerBlind = "FIRN_E2E_BLIND"
)

func TestMain(m *testing.M) {
	url := os.Getenv(workerURL)
	if url == "" {
		os.Exit(m.Run())
	}
	if err := work(url, os.Getenv(workerLog), os.Getenv(workerBlind) != ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// chaosLayout has few node numbers, so that they change hands often.
var chaosLayout = firn.MustParseLayout("bits=time:41.node:3.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z")

const (
	chaosWindow = 2 * time.Second
	chaosAhead  = 200 * time.Millisecond
)

// A blind store is a mistake on purpose: its CAS overwrites whatever there is.
type blind struct{ *etcdstore.Store }

func (b blind) CAS(ctx context.Context, key string, _, next []byte) (bool, error) {
	for {
		old, err := b.Store.Get(ctx, key)
		if err != nil {
			return false, err
		}
		if ok, err := b.Store.CAS(ctx, key, old, next); ok || err != nil {
			return ok, err
		}
	}
}

// runSize is that of a run in a log: its first ID, step and count.
const runSize = 24

// work makes IDs until it is killed, or its parent is gone. What it has handed out it
// writes to its log.
func work(url, log string, mistaken bool) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(0)
	}()
	ctx := context.Background()
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var s grant.Store
	for { // etcd may be away
		if s, err = stores.Open(ctx, url, stores.Options{}); err == nil {
			break
		}
	}
	if mistaken {
		s = blind{s.(*etcdstore.Store)}
	}
	ahead := chaosAhead
	var q *sequencer.Sequencer
	for {
		q, err = sequencer.Open(ctx, s, "chaos", &sequencer.Config{Layout: chaosLayout, MaxAhead: &ahead, Window: chaosWindow, WaitForNode: true})
		if err == nil {
			break
		}
		if !errors.Is(err, sequencer.ErrUnavailable) {
			return err
		}
	}
	for n := 0; ; {
		call, cancel := context.WithTimeout(ctx, time.Second)
		b, err := q.NextBatch(call, 1000)
		cancel()
		if err != nil {
			// Without etcd there is nothing when the window is over.
			fmt.Fprintf(os.Stdout, "%v\n", err)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		var out []byte
		for _, r := range b.Runs() {
			out = binary.BigEndian.AppendUint64(out, uint64(r.First))
			out = binary.BigEndian.AppendUint64(out, r.Step)
			out = binary.BigEndian.AppendUint64(out, uint64(r.Count))
		}
		if _, err := f.Write(out); err != nil {
			return err
		}
		if n++; n%20 == 0 {
			time.Sleep(time.Millisecond) // leaves the processor to others
		}
	}
}

// A fleet is the processes of a test.
type fleet struct {
	t       *testing.T
	url     string
	logs    string
	env     []string
	workers []*worker
	started int
}

type worker struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
	stopped time.Time // when it is to go on, or zero
}

func newFleet(t *testing.T, url string, size int, env ...string) *fleet {
	f := &fleet{t: t, url: url, logs: t.TempDir(), env: env, workers: make([]*worker, size)}
	for i := range f.workers {
		f.start(i)
	}
	t.Cleanup(f.kill)
	return f
}

func (f *fleet) start(i int) {
	f.started++
	w := &worker{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerURL+"="+f.url, workerLog+"="+filepath.Join(f.logs, fmt.Sprint(f.started)))
	w.cmd.Env = append(w.cmd.Env, f.env...)
	w.cmd.Stderr = os.Stderr
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	w.stdin = stdin
	if err := w.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		_ = w.cmd.Wait()
		close(w.ended)
	}()
	f.workers[i] = w
}

// kill ends all.
func (f *fleet) kill() {
	for _, w := range f.workers {
		f.end(w)
	}
}

func (f *fleet) end(w *worker) {
	_ = w.cmd.Process.Kill()
	<-w.ended
	_ = w.stdin.Close()
}

// step kills or stops one, and lets those go on whose time has come.
func (f *fleet) step(r *rand.Rand, counts map[string]int) {
	for _, w := range f.workers {
		select {
		case <-w.ended:
			f.t.Fatal("a process ended by itself")
		default:
		}
		if !w.stopped.IsZero() && time.Now().After(w.stopped) {
			_ = w.cmd.Process.Signal(syscall.SIGCONT)
			w.stopped = time.Time{}
		}
	}
	i := r.IntN(len(f.workers))
	w := f.workers[i]
	switch what := r.IntN(10); {
	case !w.stopped.IsZero():
	case what == 0:
		f.end(w)
		f.start(i)
		counts["process killed"]++
	case what == 1:
		_ = w.cmd.Process.Signal(syscall.SIGSTOP)
		w.stopped = time.Now().Add(time.Duration(r.Int64N(int64(chaosWindow * 2))))
		counts["process stopped"]++
	}
}

// check reads what all have handed out, and returns how much it is and which slots are
// there twice.
func (f *fleet) check() (ids, runs int, twice []string) {
	f.t.Helper()
	type span struct{ first, last uint64 } // slots of one node
	spans := make(map[uint64][]span)
	files, err := filepath.Glob(filepath.Join(f.logs, "*"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			f.t.Fatal(err)
		}
		in := bufio.NewReader(file)
		var before firn.ID
		for {
			var b [runSize]byte
			if _, err := io.ReadFull(in, b[:]); err != nil {
				break // the end, or a run that was cut by a kill
			}
			first := firn.ID(binary.BigEndian.Uint64(b[:]))
			step, count := binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
			if first <= before {
				f.t.Errorf("%s: ID %v after %v", name, first, before)
			}
			before = first + firn.ID(step*(count-1))
			parts, err := chaosLayout.Decompose(first)
			if err != nil || step != 1 {
				f.t.Fatal(err, step)
			}
			slot := uint64(parts.Time.UnixMilli())<<12 | parts.Seq
			spans[parts.Node] = append(spans[parts.Node], span{slot, slot + count - 1})
			ids += int(count)
			runs++
		}
		_ = file.Close()
	}
	for node, s := range spans {
		slices.SortFunc(s, func(a, b span) int { return int(int64(a.first) - int64(b.first)) })
		for i := range s[1:] {
			if s[i+1].first <= s[i].last {
				twice = append(twice, fmt.Sprintf("node %d: slots %v and %v have IDs in common", node, s[i], s[i+1]))
			}
		}
	}
	return ids, runs, twice
}

// lasts is how long the faults go on.
func lasts(usual time.Duration) time.Duration {
	switch {
	case os.Getenv("FIRN_SOAK") != "":
		return 30 * time.Minute
	case testing.Short():
		return usual / 4
	}
	return usual
}

// TestEtcdChaos: processes make IDs with node numbers from an etcd of three members,
// while members and processes are killed, stopped and cut off. Every ID is checked;
// so is the history of reads and writes of others, with porcupine.
func TestEtcdChaos(t *testing.T) {
	c := etcdtest.Start(t)
	f := newFleet(t, c.URL("chaos")+"?timeout=1s", 6)
	h := newHistory(t, c)
	counts := make(map[string]int)
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))

	// begin does one thing, and returns what undoes it.
	member := func() int { return r.IntN(etcdtest.Members) }
	leader := func() int {
		for {
			if i, _ := c.Leader(); i >= 0 {
				return i
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	kill := func(all ...int) func() {
		for _, i := range all {
			c.Kill(i)
		}
		return func() {
			for _, i := range all {
				c.Start(i)
			}
		}
	}
	stop := func(i int) func() { c.Stop(i); return func() { c.Go(i) } }
	isolate := func(i int) func() { c.Isolate(i, true); return func() { c.Isolate(i, false) } }
	faults := map[string]func() func(){
		"member killed":   func() func() { return kill(member()) },
		"all killed":      func() func() { return kill(0, 1, 2) },
		"member stopped":  func() func() { return stop(member()) },
		"member isolated": func() func() { return isolate(member()) },
		"one-way cut": func() func() {
			from := member()
			to := (from + 1 + r.IntN(2)) % etcdtest.Members
			c.CutMember(from, to, true)
			return func() { c.CutMember(from, to, false) }
		},
		"clients cut": func() func() {
			first, second := member(), member()
			c.CutClients(first, true)
			c.CutClients(second, true)
			return func() { c.CutClients(first, false); c.CutClients(second, false) }
		},
		"compaction": func() func() {
			if err := c.Compact(); err != nil {
				t.Logf("compaction: %v", err)
			}
			return func() {}
		},
		"leader killed":   func() func() { return kill(leader()) },
		"leader stopped":  func() func() { return stop(leader()) },
		"leader isolated": func() func() { return isolate(leader()) },
		"leader's clients cut": func() func() {
			i := leader()
			c.CutClients(i, true)
			return func() { c.CutClients(i, false) }
		},
	}
	kinds := slices.Sorted(maps.Keys(faults))
	begin := time.Now()
	for round := 0; round == 0 || time.Since(begin) < lasts(50*time.Second); round++ {
		r.Shuffle(len(kinds), func(i, k int) { kinds[i], kinds[k] = kinds[k], kinds[i] })
		for _, kind := range kinds {
			undo := faults[kind]()
			counts[kind]++
			for until := time.Now().Add(time.Duration(r.IntN(2500)) * time.Millisecond); time.Now().Before(until); {
				f.step(r, counts)
				time.Sleep(100 * time.Millisecond)
			}
			undo()
			for until := time.Now().Add(time.Duration(r.IntN(2000)) * time.Millisecond); time.Now().Before(until); {
				f.step(r, counts)
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
	took := time.Since(begin)
	c.Ready()
	f.kill()
	ids, runs, twice := f.check()
	for _, text := range twice {
		t.Error(text)
	}
	var text []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	for _, kind := range append(kinds, "process killed", "process stopped") {
		if counts[kind] == 0 {
			t.Errorf("there was no fault %q", kind)
		}
	}
	t.Logf("report: etcd under chaos for %v: 6 processes at a time, %d in all: %d IDs in %d runs, no duplicate; faults: %s",
		took.Round(time.Second), f.started, ids, runs, strings.Join(text, ", "))
	h.check()
}

// TestEtcdMutant: the same harness notices a store that does not compare.
func TestEtcdMutant(t *testing.T) {
	c := etcdtest.Start(t)
	f := newFleet(t, c.URL("mutant"), 6, workerBlind+"=1")
	r := rand.New(rand.NewPCG(1, 2))
	counts := make(map[string]int)
	for begin := time.Now(); ; {
		for range 10 {
			f.step(r, counts)
			time.Sleep(100 * time.Millisecond)
		}
		if ids, _, twice := f.check(); len(twice) > 0 {
			t.Logf("report: etcd, a CAS that does not compare: noticed after %v and %d IDs", time.Since(begin).Round(time.Second), ids)
			return
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("a store that does not compare was not noticed, with %v", counts)
		}
	}
}

// TestEtcdJoin: a thousand members take their numbers at once.
func TestEtcdJoin(t *testing.T) {
	const members = 1000
	c := etcdtest.Start(t)
	const connections = 20
	var open [connections]grant.Store
	for i := range open {
		s, err := stores.Open(t.Context(), c.URL("join"), stores.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		open[i] = s
	}
	layout := firn.Default()
	if _, err := grant.Create(t.Context(), open[0], "join", grant.NewConfig(layout, 0), time.Now()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	begin := make(chan struct{})
	var tries, refused atomic.Uint64
	var mu sync.Mutex
	numbers := make(map[uint64]bool)
	var slowest time.Duration
	var took []time.Duration
	ready := make(chan struct{}, members)
	var opened [members]*sequencer.Sequencer
	for i := range members {
		all.Go(func() {
			ready <- struct{}{}
			<-begin
			start := time.Now()
			q, err := sequencer.Open(t.Context(), open[i%connections], "join", nil)
			if err != nil {
				t.Error(err)
				return
			}
			opened[i] = q
			id, err := q.Next(t.Context())
			lasted := time.Since(start)
			if err != nil {
				t.Error(err)
				return
			}
			p, err := layout.Decompose(id)
			if err != nil {
				t.Error(err)
				return
			}
			stats := q.Stats().Keeper
			tries.Add(stats.Acquired + stats.Refused)
			refused.Add(stats.Refused)
			mu.Lock()
			numbers[p.Node] = true
			slowest = max(slowest, lasted)
			took = append(took, lasted)
			mu.Unlock()
		})
	}
	for range members {
		<-ready
	}
	start := time.Now()
	close(begin)
	all.Wait()
	total := time.Since(start)
	if len(numbers) != members {
		t.Errorf("%d members have %d numbers", members, len(numbers))
	}
	slices.Sort(took)
	if len(took) > 0 {
		t.Logf("report: joining: %d members of %d numbers over an etcd of three processes: all have an ID after %v (median %v, slowest %v); %d tries, of which %d were refused",
			members, layout.MaxNode()+1, total.Round(time.Millisecond), took[len(took)/2].Round(time.Millisecond), slowest.Round(time.Millisecond), tries.Load(), refused.Load())
	}
	for _, q := range opened {
		if q != nil {
			all.Go(func() { _ = q.Close(t.Context()) })
		}
	}
	all.Wait()
}

// A history is what some clients have asked of keys, and what they were told.
type history struct {
	t      *testing.T
	stop   context.CancelFunc
	all    sync.WaitGroup
	begin  time.Time
	mu     sync.Mutex
	ops    map[string][]porcupine.Operation // by key
	counts map[string]int
}

type call struct {
	cas       bool
	old, next string
}

type answer struct {
	value string // of a get
	ok    bool   // of a CAS
	known bool
}

const forever = int64(1) << 62

// newHistory has clients ask until check.
func newHistory(t *testing.T, c *etcdtest.Cluster) *history {
	ctx, stop := context.WithCancel(context.Background())
	h := &history{t: t, stop: stop, begin: time.Now(), ops: make(map[string][]porcupine.Operation), counts: make(map[string]int)}
	t.Cleanup(func() { stop(); h.all.Wait() })
	const each = 40 // calls of one client on one key: long histories are hard to check
	for id := range 4 {
		h.all.Go(func() {
			var s grant.Store
			for s == nil {
				var err error
				if s, err = stores.Open(ctx, c.URL("history")+"?timeout=1s", stores.Options{}); err != nil {
					if ctx.Err() != nil {
						return
					}
					s = nil
				}
			}
			defer s.Close()
			r := rand.New(rand.NewPCG(uint64(id), 7))
			for n := 0; ctx.Err() == nil; n++ {
				key := fmt.Sprintf("k%d", n/each)
				h.one(ctx, s, id, key, fmt.Sprintf("%d-%d", id, n), r)
				time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
			}
		})
	}
	return h
}

// one asks once: it reads, or replaces what it reads.
func (h *history) one(ctx context.Context, s grant.Store, id int, key, next string, r *rand.Rand) {
	ask := func(in call) answer {
		call, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		begin := time.Since(h.begin).Nanoseconds()
		var out answer
		var err error
		if in.cas {
			out.ok, err = s.CAS(call, key, []byte(in.old), []byte(in.next))
		} else {
			var v []byte
			v, err = s.Get(call, key)
			out.value = string(v)
		}
		end := time.Since(h.begin).Nanoseconds()
		out.known = err == nil
		h.mu.Lock()
		defer h.mu.Unlock()
		switch {
		case err == nil:
		case !in.cas, errors.Is(err, grant.ErrNotSent):
			h.counts["nothing came of"]++
			return out // nothing was done
		default:
			h.counts["unknown"]++
			end = forever
		}
		if out.known && in.cas && out.ok {
			h.counts["applied"]++
		} else if out.known && in.cas {
			h.counts["refused"]++
		}
		h.ops[key] = append(h.ops[key], porcupine.Operation{ClientId: id, Input: in, Call: begin, Output: out, Return: end})
		return out
	}
	got := ask(call{})
	if got.known && r.IntN(3) > 0 {
		ask(call{cas: true, old: got.value, next: next})
	}
}

// check ends the clients, and sees whether what they were told is of one register for
// each key. A CAS whose result is unknown may be applied at any later moment, or never.
func (h *history) check() {
	h.t.Helper()
	h.stop()
	h.all.Wait()
	model := porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.(string), input.(call), output.(answer)
			switch {
			case !in.cas:
				return out.value == now, now
			case !out.known && in.old == now:
				return true, in.next
			case !out.known:
				return true, now
			case out.ok:
				return in.old == now, in.next
			}
			return in.old != now, now
		},
		Equal: func(a, b any) bool { return a == b },
	}
	operations := 0
	for key, ops := range h.ops {
		operations += len(ops)
		// Clients of porcupine do one thing at a time; one that gave up does more.
		for i := range ops {
			ops[i].ClientId = i
		}
		switch porcupine.CheckOperationsTimeout(model, ops, time.Minute) {
		case porcupine.Illegal:
			h.t.Errorf("the history of key %s is not linearizable: %v", key, ops)
		case porcupine.Unknown:
			h.t.Errorf("the history of key %s was not decided within a minute", key)
		}
	}
	h.t.Logf("report: etcd under chaos: %d calls of 4 clients on %d keys are linearizable (porcupine): %d CAS applied, %d refused, %d unknown, %d calls nothing came of",
		operations, len(h.ops), h.counts["applied"], h.counts["refused"], h.counts["unknown"], h.counts["nothing came of"])
	if h.counts["applied"] < 100 || h.counts["unknown"] == 0 {
		h.t.Errorf("too little happened: %v", h.counts)
	}
}
