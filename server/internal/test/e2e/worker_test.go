//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/test/distinct"
	"github.com/firnid/firn/server/stores"
)

// taskEnv tells a process of a test what to do: a task, in JSON.
const taskEnv = "FIRN_E2E_TASK"

// A task is what the workers of a fleet do.
type task struct {
	Store  string        // its URL
	Layout string        // of the sequencer
	Window time.Duration // of the sequencer
	Ahead  time.Duration // MaxAhead of the sequencer

	Log string // what the files of this worker begin with
}

// chaosTask has few node IDs, so that they change hands often, and a window so
// short that many pass.
func chaosTask(store string) task {
	return task{
		Store: store, Layout: "bits=time:41.node:3.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z",
		Window: 2 * time.Second, Ahead: 200 * time.Millisecond,
	}
}

func TestMain(m *testing.M) {
	text := os.Getenv(taskEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var job task
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = job.work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// What a worker writes: runs of IDs, as they were handed out; how often it did
// what; and what it has to say to people.
const (
	runsFile  = ".runs"
	statsFile = ".stats"
	textFile  = ".text"
)

// runSize is that of a run in a log: its first ID, step and count.
const runSize = 24

// work makes IDs until it is killed, its parent has gone, or it has to end:
// then it gives its node ID back.
func (j task) work() error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(0)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var files [3]*os.File
	for i, suffix := range []string{runsFile, statsFile, textFile} {
		f, err := os.OpenFile(j.Log+suffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		files[i] = f
	}
	var s grant.Store
	for s == nil { // etcd may be away
		opened, err := stores.Open(ctx, j.Store)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			s = opened
		}
	}
	config := &sequencer.Options{
		Layout:      firn.MustParseLayout(j.Layout),
		MaxAhead:    &j.Ahead,
		Window:      j.Window,
		WaitForNode: true,
		Logger:      slog.New(slog.NewTextHandler(files[2], &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	var q *sequencer.Sequencer
	for q == nil {
		opened, err := sequencer.Open(ctx, s, "chaos", config)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				q = opened
				break
			}
			return nil
		case err == nil:
			q = opened
		case !errors.Is(err, firn.ErrUnavailable) && !timedOut(err) && !cut(err):
			// Its error for an unreachable store is not always the same.
			fmt.Fprintln(files[2], "open:", err)
		}
	}
	var written time.Time
	for n := 0; ctx.Err() == nil; {
		if now := time.Now(); now.Sub(written) > 20*time.Millisecond {
			written = now
			if err := writeStats(files[1], q.Stats().Keeper); err != nil {
				return err
			}
		}
		call, cancel := context.WithTimeout(ctx, time.Second)
		b, err := q.NextBatch(call, 1000)
		cancel()
		if err != nil {
			// Without etcd, nothing is possible after the window has ended.
			time.Sleep(20 * time.Millisecond)
			continue
		}
		var out []byte
		for _, r := range b.Runs() {
			out = binary.BigEndian.AppendUint64(out, uint64(r.First))
			out = binary.BigEndian.AppendUint64(out, r.Step)
			out = binary.BigEndian.AppendUint64(out, uint64(r.Count))
		}
		if _, err := files[0].Write(out); err != nil {
			return err
		}
		if n++; n%20 == 0 {
			time.Sleep(time.Millisecond) // leaves the processor to others
		}
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = q.Close(end) // etcd may be away
	return writeStats(files[1], q.Stats().Keeper)
}

// cut reports whether a connection to the store was lost, or refused.
func cut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*net.OpError))
}

// timedOut reports whether a call of the store has waited for too long, for an
// answer, a connection or its TLS handshake.
func timedOut(err error) bool {
	var e interface{ Timeout() bool }
	return errors.As(err, &e) && e.Timeout()
}

// statsOrder is how the counts stand in a file.
func statsOrder(s *grant.KeeperStats) []*uint64 {
	all := []*uint64{&s.Requests, &s.Failed, &s.Unknown, &s.Refused, &s.Acquired, &s.Renewed, &s.Released, &s.Lost}
	for i := range s.Alarms {
		all = append(all, &s.Alarms[i])
	}
	return all
}

func writeStats(f *os.File, s grant.KeeperStats) error {
	var out []byte
	for _, n := range statsOrder(&s) {
		out = binary.BigEndian.AppendUint64(out, *n)
	}
	_, err := f.WriteAt(out, 0)
	return err
}

// A fleet is the processes of a test.
type fleet struct {
	t       *testing.T
	task    task
	layout  firn.Layout
	logs    string
	workers []*worker
	started int

	deck []string // faults to come
	next time.Time
}

type worker struct {
	*proc.Process
	log     string
	stdin   io.Closer
	stopped time.Time // when to resume it, or zero
	ending  bool      // it has to end
}

// newFleet makes a fleet that runs nothing yet, and ends with the test.
func newFleet(t *testing.T, j task) *fleet {
	f := &fleet{t: t, task: j, layout: firn.MustParseLayout(j.Layout), logs: t.TempDir()}
	t.Cleanup(f.kill)
	return f
}

// start starts a worker, in the place of another one that has ended if i is
// its.
func (f *fleet) start(i int) *worker {
	f.t.Helper()
	f.started++
	j := f.task
	j.Log = filepath.Join(f.logs, fmt.Sprintf("%06d", f.started))
	text := must.Get(json.Marshal(j))(f.t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), taskEnv+"="+string(text))
	stdin := must.Get(cmd.StdinPipe())(f.t)
	w := &worker{Process: proc.StartCommand(f.t, cmd), log: j.Log, stdin: stdin}
	for len(f.workers) <= i {
		f.workers = append(f.workers, nil)
	}
	f.workers[i] = w
	return w
}

// kill ends all.
func (f *fleet) kill() {
	for _, w := range f.workers {
		if w != nil {
			w.end()
		}
	}
}

func (w *worker) end() {
	w.Kill()
	_ = w.stdin.Close()
}

// What befalls workers.
const (
	workerKilled  = "process killed"
	workerStopped = "process stopped beyond its window"
	workerPaused  = "process stopped for a moment"
	workerEnded   = "process ended in order"
)

// step does something to one worker from time to time, and resumes those whose
// time has come. All faults take turns, in random order.
func (f *fleet) step(r *rand.Rand, counts map[string]int) {
	f.t.Helper()
	for i, w := range f.workers {
		select {
		case <-w.Ended:
			if !w.ending {
				f.t.Fatalf("process %s ended by itself: %s", w.log, w.Log())
			}
			f.start(i)
			continue
		default:
		}
		if !w.stopped.IsZero() && time.Now().After(w.stopped) {
			w.Signal(syscall.SIGCONT)
			w.stopped = time.Time{}
		}
	}
	if time.Now().Before(f.next) {
		return
	}
	f.next = time.Now().Add(time.Duration(200+r.IntN(600)) * time.Millisecond)
	i := r.IntN(len(f.workers))
	w := f.workers[i]
	if !w.stopped.IsZero() || w.ending {
		return
	}
	if len(f.deck) == 0 {
		f.deck = []string{workerKilled, workerStopped, workerPaused, workerEnded}
		r.Shuffle(len(f.deck), func(i, k int) { f.deck[i], f.deck[k] = f.deck[k], f.deck[i] })
	}
	what := f.deck[0]
	f.deck = f.deck[1:]
	window := int64(f.task.Window)
	switch what {
	case workerKilled:
		w.end()
		f.start(i)
	case workerStopped:
		w.Signal(syscall.SIGSTOP)
		w.stopped = time.Now().Add(time.Duration(window + r.Int64N(window)))
	case workerPaused:
		w.Signal(syscall.SIGSTOP)
		w.stopped = time.Now().Add(time.Duration(r.Int64N(window / 2)))
	case workerEnded:
		w.ending = true
		w.Signal(syscall.SIGTERM)
	}
	counts[what]++
}

// runs reads what a worker has handed out, and gives it to yield, in order.
func (f *fleet) runs(log string, yield func(first firn.ID, count uint64)) {
	f.t.Helper()
	file := must.Get(os.Open(log + runsFile))(f.t)
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<16)
	var before firn.ID
	for {
		var b [runSize]byte
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return // the end, or a run that was cut by a kill
		}
		first := firn.ID(binary.BigEndian.Uint64(b[:]))
		step, count := binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
		if step != 1 || count == 0 {
			f.t.Fatalf("%s: a run of %d IDs with step %d", log, count, step)
		}
		if first <= before {
			f.t.Errorf("%s: ID %v after %v", log, first, before)
		}
		before = first + firn.ID(count-1)
		yield(first, count)
	}
}

// A tally is what a fleet has done.
type tally struct {
	grant.KeeperStats // at least: those of the last moments of a process that was killed are not known
	runs              int
	ids               distinct.Slots
	errors            []string // what workers have reported that must not be
}

// check reads what all have written. Every ID that anybody was handed out is
// compared with all others.
func (f *fleet) check() *tally {
	f.t.Helper()
	c := &tally{ids: distinct.Slots{Layout: f.layout}}
	files := must.Get(filepath.Glob(filepath.Join(f.logs, "*"+runsFile)))(f.t)
	for _, name := range files {
		log := name[:len(name)-len(runsFile)]
		f.runs(log, func(first firn.ID, count uint64) {
			c.runs++
			if err := c.ids.Add(first, count); err != nil {
				f.t.Fatalf("%s: %v", log, err)
			}
		})
		if b, err := os.ReadFile(log + statsFile); err == nil && len(b) > 0 {
			var s grant.KeeperStats
			sum := statsOrder(&c.KeeperStats)
			for i := range statsOrder(&s) {
				*sum[i] += binary.BigEndian.Uint64(b[8*i:])
			}
		}
		if b, err := os.ReadFile(log + textFile); err == nil {
			for line := range bytes.Lines(b) {
				ended := bytes.Contains(line, []byte("window ended")) // as it must without a store
				if bytes.Contains(line, []byte("level=ERROR")) && !ended || bytes.HasPrefix(line, []byte("open:")) {
					c.errors = append(c.errors, fmt.Sprintf("%s: %s", filepath.Base(log), bytes.TrimSpace(line)))
				}
			}
		}
	}
	return c
}
