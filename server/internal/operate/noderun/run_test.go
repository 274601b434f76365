//go:build unix

package noderun

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/test/nettest"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		os.Exit(play(mode))
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // these tests wait for windows, and compute little
	os.Exit(m.Run())
}

// A clock is one that a test sets. It stands still in between.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A trial is a call of Run in a test.
type trial struct {
	t       *testing.T
	clock   *clock
	store   *faultstore.Store
	log     *nettest.Output
	signals chan os.Signal
	config  Config
	done    chan struct{}
	code    int
	err     error
}

func newTrial(t *testing.T, command ...string) *trial {
	c := &clock{now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	r := &trial{t: t, clock: c, store: &faultstore.Store{Store: new(memstore.Store)}, log: new(nettest.Output), signals: make(chan os.Signal, 4), done: make(chan struct{})}
	null := must.Get(os.OpenFile(os.DevNull, os.O_RDWR, 0))(t)
	t.Cleanup(func() { _ = null.Close() })
	r.config = Config{
		Store: r.store, Sequencer: DefaultSequencer, Window: DefaultWindow, Environ: os.Environ(), Stdin: null, Stdout: null, Stderr: null,
		Signals: r.signals, MemberOptions: grant.MemberOptions{Nodes: &grant.NodeRange{Lo: 7, Hi: 7}, Logger: slog.New(slog.NewTextHandler(r.log, nil)), Now: c.Now},
		Grace: 20 * time.Second, Margin: 2 * time.Minute,
	}
	r.command(command...)
	return r
}

func (r *trial) command(words ...string) {
	r.config.Command = nil
	for _, w := range words {
		t := must.Get(ParseTemplate(w))(r.t)
		r.config.Command = append(r.config.Command, t)
	}
}

func (r *trial) start() {
	go func() {
		defer close(r.done)
		r.code, r.err = Run(r.t.Context(), r.config)
	}()
	r.t.Cleanup(func() {
		select {
		case r.signals <- syscall.SIGKILL:
		case <-r.done:
		}
		<-r.done
	})
}

// sees waits until the log has a text.
func (r *trial) sees(text string) {
	r.t.Helper()
	for !strings.Contains(r.log.String(), text) {
		select {
		case <-r.done:
			if !strings.Contains(r.log.String(), text) {
				r.t.Fatalf("ended with %d, %v, and the log has no %q:\n%s", r.code, r.err, text, r.log)
			}
		case <-r.t.Context().Done():
			r.t.Fatal("the test has ended")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ends waits for the end, with a code and a part of its error.
func (r *trial) ends(code int, text string) {
	r.t.Helper()
	<-r.done
	switch {
	case r.code != code, (r.err != nil) != (text != ""), text != "" && !strings.Contains(r.err.Error(), text):
		r.t.Errorf("ended with %d, %v, want %d, %q\n%s", r.code, r.err, code, text, r.log)
	}
}

// passes has time pass, slowly enough for the command to be stopped in it.
func (r *trial) passes() {
	for {
		select {
		case <-r.done:
			return
		case <-time.After(50 * time.Millisecond):
			r.clock.add(5 * time.Second)
		}
	}
}

// renews has time pass, and waits for the next renewal.
func (r *trial) renews(after time.Duration) {
	r.t.Helper()
	until := r.record().Until
	r.clock.add(after)
	for r.record().Until.Equal(until) {
		select {
		case <-r.done:
			r.t.Fatalf("ended with %d, %v\n%s", r.code, r.err, r.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// record is what the store has of the node ID.
func (r *trial) record() grant.NodeInfo {
	r.t.Helper()
	info := must.Get(grant.Lookup(r.t.Context(), r.store.Store, DefaultSequencer))(r.t)
	n := must.Get(grant.LookupNode(r.t.Context(), r.store.Store, info, 7))(r.t)
	return n
}

// awaitFile waits until a command has made a file.
func awaitFile(t *testing.T, name string) {
	t.Helper()
	must.Await(t, func() bool { _, err := os.Stat(name); return err == nil }, "the command makes %s", name)
}

const forever = "sleep 1000 & wait"

// TestExitCodes: and however the command ends, its node ID is released.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, []byte("#!/nowhere\n"), 0o755))
	for _, tt := range []struct {
		words []string
		code  int
		err   string
	}{
		{[]string{"true"}, 0, ""}, {[]string{"sh", "-c", "exit {node}"}, 7, ""}, {[]string{"sh", "-c", "kill -9 $$"}, 128 + 9, ""}, {[]string{"sh", "-c", "kill -TERM $$"}, 128 + 15, ""},
		{[]string{"no-such-program"}, 127, "not found"}, {[]string{"/no/such"}, 127, "no such file"}, {[]string{os.TempDir()}, 126, ""}, {[]string{"no-such-{node}"}, 127, "not found"},
		{[]string{"/dev/null"}, 126, "permission denied"}, {[]string{file}, 127, "no such file"},
	} {
		r := newTrial(t, tt.words...)
		r.start()
		if <-r.done; r.code != tt.code || tt.err != "" && (r.err == nil || !strings.Contains(r.err.Error(), tt.err)) {
			t.Errorf("%q: %d, %v, want %d, %q", tt.words, r.code, r.err, tt.code, tt.err)
		}
		if err := grant.Nodes(t.Context(), r.store.Store, DefaultSequencer, func(n grant.NodeInfo, err error) bool {
			if n.Held || err != nil {
				t.Errorf("%q: node ID %d is held until %v, %v", tt.words, n.Node, n.Until, err)
			}
			return true
		}); err != nil && !errors.Is(err, grant.ErrNotFound) {
			t.Error(err)
		}
	}
}

// TestWrongClock: a node ID is acquired by a clock that is behind or ahead only
// if that is allowed.
func TestWrongClock(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		for _, allow := range [][2]bool{{false, false}, {true, false}, {false, true}} {
			r := newTrial(t, "true")
			r.config.Nodes = &grant.NodeRange{Hi: 3}
			right := r.clock.Now()
			r.config.Store = faultstore.Timed{Store: r.store, Now: func() time.Time { return right }}
			other, err := sequencer.Open(t.Context(), r.store, DefaultSequencer, &sequencer.Options{
				Layout: layout,
				Window: DefaultWindow,
				Now:    func() time.Time { return right }, Nodes: r.config.Nodes,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close(context.Background())
			r.clock.add(off)
			r.config.AllowClockBehind, r.config.AllowClockAhead = allow[0], allow[1]
			r.start()
			switch want := map[bool]error{true: grant.ErrClockBehind, false: grant.ErrClockAhead}[off < 0]; {
			case off < 0 && allow[0] || off > 0 && allow[1]:
				r.ends(0, "")
			default:
				if <-r.done; !errors.Is(r.err, want) {
					t.Errorf("by %v, allowed %v: %v, want %v", off, allow, r.err, want)
				}
			}
		}
	}
}

// TestRelease: the node ID is released a second after the last time of the
// command, and the next command begins after that.
func TestRelease(t *testing.T) {
	t.Parallel()
	r := newTrial(t, "sh", "-c", forever)
	r.start()
	r.sees("command started")
	begun := r.clock.Now()
	r.clock.add(30 * time.Second)
	r.signals <- syscall.SIGTERM
	r.ends(128+15, "")
	n := r.record()
	if want := begun.Add(31 * time.Second); n.Held || !n.Until.Equal(want) {
		t.Fatalf("held %t until %v, want free at %v", n.Held, n.Until, want)
	}
	r.done, r.log = make(chan struct{}), new(nettest.Output)
	r.config.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	r.command("true")
	r.start()
	r.sees("waiting for a node ID")
	r.clock.add(999 * time.Millisecond)
	select {
	case <-r.done:
		t.Fatalf("it ran before the node ID was free:\n%s", r.log)
	case <-time.After(50 * time.Millisecond): // it cannot have, however long this is
	}
	r.clock.add(time.Millisecond)
	r.ends(0, "")
}

// TestWindowChanged: a command continues while its sequencer gets a shorter
// window, and a longer one. The margin is never more than half of a window that
// is waited for, or that is held.
func TestWindowChanged(t *testing.T) {
	t.Parallel()
	r := newTrial(t, "sh", "-c", forever)
	r.config.Store = grant.Observe(r.store, func(ctx context.Context, _ grant.Request, _ string) (context.Context, func(bool, error)) {
		return ctx, func(bool, error) {}
	})
	r.start()
	r.sees("command started")
	set := func(window time.Duration) {
		t.Helper()
		must.Get(grant.SetWindow(t.Context(), r.config.Store, DefaultSequencer, window))(t)
	}
	set(time.Minute)
	r.sees("window=1m0s margin=30s grace=20s")
	r.renews(10*time.Minute - 35*time.Second)
	r.renews(25 * time.Second)
	set(20 * time.Minute)
	for info, _ := grant.Lookup(t.Context(), r.store, DefaultSequencer); r.record().Until.Sub(r.clock.Now()) < info.Config.Window; {
		r.renews(25 * time.Second)
	}
	r.sees("window=20m0s margin=2m0s grace=20s")
	r.signals <- syscall.SIGTERM
	r.ends(128+15, "")
}

// TestLimitsLaw: the grace period is in the margin, and that in half of the
// window, for every window and whatever was given.
func TestLimitsLaw(t *testing.T) {
	for _, window := range []time.Duration{100 * time.Millisecond, 4 * time.Second, 10 * time.Minute, 48 * time.Hour} {
		for _, margin := range []time.Duration{0, time.Second, time.Hour} {
			for _, grace := range []time.Duration{0, time.Second, time.Hour} {
				l := Config{Margin: margin, Grace: grace}.limits(window)
				if l.grace <= 0 || l.grace > l.margin || l.margin > window/2 || l.every <= 0 || l.every > l.margin/8 || l.every > usedSlack/4 {
					t.Errorf("window %v, margin %v, grace %v: %+v", window, margin, grace, l)
				}
				if margin > 0 && margin <= window/2 && l.margin != margin || grace > 0 && grace <= l.margin && l.grace != grace {
					t.Errorf("window %v: given are margin %v and grace %v, and it has %+v", window, margin, grace, l)
				}
			}
		}
	}
}

// TestStopped: what ends a running command but itself.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(r *trial)
		text string
		logs string
	}{
		{"store down", func(r *trial) { r.store.Cut.Store(true); r.clock.add(8*time.Minute + time.Second) }, "within the margin of 2m0s", ""},
		{"suspended", func(r *trial) { r.store.Cut.Store(true); r.clock.add(time.Hour) }, "the window ended at", "may have used its node ID after the window ended"},
		{"set back", func(r *trial) { r.clock.add(-time.Second) }, "was set back", ""},
		{"fenced", func(r *trial) {
			if _, err := grant.Fence(r.t.Context(), r.store.Store, DefaultSequencer, &grant.FenceOptions{Now: r.clock.Now, LongestWindow: time.Minute}); err != nil {
				r.t.Error(err)
			}
			r.passes()
		}, "within the margin", ""},
		{"detached", func(r *trial) {
			if _, err := grant.Detach(r.t.Context(), r.store.Store, DefaultSequencer, nil); err != nil {
				r.t.Error(err)
			}
			r.passes()
		}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newTrial(t, "sh", "-c", forever)
			r.start()
			r.sees("command started")
			tt.do(r)
			if <-r.done; r.code != exitStopped || r.err == nil || !strings.Contains(r.err.Error(), tt.text) {
				t.Errorf("ended with %d, %v\n%s", r.code, r.err, r.log)
			}
			if !strings.Contains(r.log.String(), tt.logs) {
				t.Errorf("no %q in the log:\n%s", tt.logs, r.log)
			}
		})
	}
}

// TestSignals: signals reach the command, which decides.
func TestSignals(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	r := newTrial(t, "sh", "-c", `trap "exit 42" USR1; trap "" TERM; : >"$0"; while :; do sleep 0.01; done`, ready)
	r.start()
	awaitFile(t, ready)          // until the traps are set
	r.signals <- syscall.SIGTERM // ignored
	r.signals <- syscall.SIGUSR1
	r.ends(42, "")
}

// TestGroup: what the command leaves behind is ended before the node ID is
// released.
func TestGroup(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	r := newTrial(t, "sh", "-c", `sleep 1000 & echo $! >"$0"`, file)
	r.start()
	r.ends(0, "")
	if pid := pidOf(t, file); syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d lives", pid)
	}
	if r.record().Held {
		t.Error("the node ID is held")
	}
}

// TestLeader: the command has ended when its own process has, even if that left
// the group and another process of the group lives.
func TestLeader(t *testing.T) {
	t.Parallel()
	r := newTrial(t, os.Args[0])
	r.config.Environ = append(r.config.Environ, modeVar+"=leaver")
	r.start()
	r.ends(6, "")
}

// TestCommandIgnoresSignal: a command that ignores SIGTERM is killed at the end
// of its window, and a stopped one ends too.
func TestCommandIgnoresSignal(t *testing.T) {
	t.Parallel()
	for _, script := range []string{`trap "" TERM; : >"$0"; while :; do sleep 0.01; done`, `: >"$0"; kill -STOP $$; sleep 1000`} {
		ready := filepath.Join(t.TempDir(), "ready")
		r := newTrial(t, "sh", "-c", script, ready)
		r.start()
		awaitFile(t, ready)
		r.store.Cut.Store(true)
		r.clock.add(8*time.Minute + time.Second)
		r.sees("stopping the command")
		r.clock.add(2 * time.Minute)
		r.ends(exitStopped, "within the margin")
	}
}

func TestInvalidConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		change func(*Config)
		text   string
	}{
		{func(c *Config) { c.Nodes = &grant.NodeRange{Lo: 1, Hi: 1 << 22} }, "which has 0..4194303"},
		{func(c *Config) { c.Margin = 6 * time.Minute }, "at most half"},
		{func(c *Config) { c.Grace = 3 * time.Minute }, "must not exceed the margin"},
		{func(c *Config) { c.Sequencer = "no/such name" }, "name"},
	} {
		r := newTrial(t, "true")
		tt.change(&r.config)
		r.start()
		r.ends(0, tt.text)
	}
}
