//go:build linux || darwin

package sequencer_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/sequencer"
)

// childEnv is set to the directory of a process of TestProcesses.
const childEnv = "FIRN_SEQUENCER_CHILD"

func TestMain(m *testing.M) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := child(dir, os.Getenv(childEnv+"_LOG")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The size of a run in a log: first ID, step and count.
const runSize = 24

// child makes IDs until it is killed, or until its parent has ended. It writes
// the IDs that it has handed out to its log, in whole runs.
func child(dir, log string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(0)
	}()
	ctx := context.Background()
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s, err := dirstore.Open(ctx, dir, &dirstore.Options{AllowVolatile: true})
	if err != nil {
		return err
	}
	ahead := 200 * time.Millisecond
	q, err := sequencer.Open(ctx, s, "chaos", &sequencer.Config{Layout: processLayout, MaxAhead: &ahead, Window: time.Second, WaitForNode: true})
	if err != nil {
		return err
	}
	for n := uint64(0); ; n++ {
		b, err := q.NextBatch(ctx, 1000)
		if err != nil {
			return err
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
		if n%50 == 49 {
			// Some end properly, and give their node ID back.
			if rand.IntN(40) == 0 {
				return q.Close(ctx)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// processLayout has few node IDs, so that they often change owners.
var processLayout = firn.MustParseLayout("bits=time:41.node:4.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z")

// TestProcesses: eight processes share one directory. One of them is killed
// every 200 ms, and others are suspended for longer than their window or for a
// moment, at any point. Every ID that they have handed out is checked.
func TestProcesses(t *testing.T) {
	const processes, stopped = 8, 3 * time.Second
	wantIDs, wantKills := 2_000_000, 15
	if os.Getenv("FIRN_ALL") != "" {
		wantIDs, wantKills = 10_000_000, 40
	}
	soak, _ := time.ParseDuration(os.Getenv("FIRN_SOAK")) // FIRN_SOAK=10m: run for this time
	if os.Getenv("FIRN_SOAK") != "" && soak == 0 {
		wantIDs, wantKills = 1_000_000_000, 3000
	}
	if testing.Short() {
		wantIDs, wantKills = 500_000, 10
	}
	dir, logs := t.TempDir(), t.TempDir()
	s, err := dirstore.Open(t.Context(), dir, &dirstore.Options{Create: true, AllowVolatile: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	type process struct {
		cmd     *exec.Cmd
		stdin   io.Closer
		ended   chan struct{}
		stopped time.Time // when it continues, or zero
	}
	var started int
	start := func() *process {
		started++
		p := &process{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
		p.cmd.Env = append(os.Environ(), childEnv+"="+dir, childEnv+"_LOG="+filepath.Join(logs, fmt.Sprint(started)))
		p.cmd.Stderr = os.Stderr
		stdin, err := p.cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		p.stdin = stdin
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = p.cmd.Wait() // killed, or ended by itself
			close(p.ended)
		}()
		return p
	}
	kill := func(p *process) {
		_ = p.cmd.Process.Kill()
		<-p.ended
		_ = p.stdin.Close()
	}
	made := func() (n int) {
		files, _ := filepath.Glob(filepath.Join(logs, "*"))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				n += int(info.Size()) / runSize // runs of at most 1000 IDs
			}
		}
		return n
	}

	var fleet []*process
	for range processes {
		fleet = append(fleet, start())
	}
	t.Cleanup(func() {
		for _, p := range fleet {
			kill(p)
		}
	})
	var kills, stops, ends int
	r := rand.New(rand.NewPCG(1, 1))
	begin := time.Now()
	// Most runs have some hundred IDs, those of a tick; the exact count is
	// known at the end.
	for time.Since(begin) < soak || kills < wantKills || stops < wantKills/4 || made()*500 < wantIDs*2 {
		time.Sleep(200 * time.Millisecond)
		for i, p := range fleet {
			select {
			case <-p.ended:
				ends++
				fleet[i] = start()
			default:
			}
			if !p.stopped.IsZero() && time.Now().After(p.stopped) {
				_ = p.cmd.Process.Signal(syscall.SIGCONT)
				p.stopped = time.Time{}
			}
		}
		i := r.IntN(processes)
		if p := fleet[i]; p.stopped.IsZero() {
			kill(p)
			kills++
			fleet[i] = start()
		}
		if r.IntN(2) == 0 {
			if p := fleet[r.IntN(processes)]; p.stopped.IsZero() {
				_ = p.cmd.Process.Signal(syscall.SIGSTOP)
				p.stopped = time.Now().Add(time.Duration(r.Int64N(int64(stopped))))
				stops++
			}
		}
	}
	for _, p := range fleet {
		kill(p)
	}
	ids, runs := checkLogs(t, logs)
	t.Logf("report: processes on a directory: %d processes, %d killed, %d stopped up to %v (the window is 1s), %d ended in order: %d IDs in %d runs, no duplicate",
		started, kills, stops, stopped, ends, ids, runs)
	if ids < wantIDs {
		t.Errorf("%d IDs, want %d", ids, wantIDs)
	}
}

// checkLogs checks that no ID is in the logs twice, and that those of one
// process increase. It returns their number.
func checkLogs(t *testing.T, dir string) (ids, runs int) {
	t.Helper()
	type span struct{ first, last uint64 } // of one node's slots
	spans := make(map[uint64][]span)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(f)
		var before firn.ID
		for {
			var b [runSize]byte
			if _, err := io.ReadFull(in, b[:]); err != nil {
				break // the end, or a run truncated by a kill
			}
			first := firn.ID(binary.BigEndian.Uint64(b[:]))
			step, count := binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
			if first <= before {
				t.Errorf("%s: ID %v after %v", file, first, before)
			}
			before = first + firn.ID(step*(count-1))
			parts, err := processLayout.Decompose(first)
			if err != nil || step != 1 {
				t.Fatal(err, step)
			}
			slot := uint64(parts.Time.UnixMilli())<<12 | parts.Seq
			spans[parts.Node] = append(spans[parts.Node], span{slot, slot + count - 1})
			ids += int(count)
			runs++
		}
		f.Close()
	}
	for node, s := range spans {
		slices.SortFunc(s, func(a, b span) int { return int(int64(a.first) - int64(b.first)) })
		for i := range s[1:] {
			if s[i+1].first <= s[i].last {
				t.Errorf("node %d: slots %v and %v have IDs in common", node, s[i], s[i+1])
			}
		}
	}
	return ids, runs
}
