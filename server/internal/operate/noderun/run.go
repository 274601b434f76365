// Package noderun runs a program under a node ID: it acquires the node ID from
// a store, starts the program, renews the window while the program runs, and
// stops the program before the window ends. It is for programs whose own
// generator needs a node ID.
//
// Two programs never hold one node ID at overlapping times, each by the wall
// clock of its machine, as long as Run gets to run at least once in each margin
// and the processes of the program stay in its process group.
// docs/worker-ids.md explains why.
package noderun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// Exit codes besides those of the command, as of env(1) and timeout(1).
const (
	exitStopped     = 124 // the command was stopped because its window could not be renewed
	exitNotRunnable = 126
	exitNotFound    = 127
	exitUnknown     = 255
	exitSignal      = 128 // + the signal that ended the command
)

// Defaults of a Config.
const (
	DefaultSequencer = "nodes"
	DefaultWindow    = 10 * time.Minute
	defaultLastNode  = 1023 // 10 bits, as most generators have
	maxMargin        = 2 * time.Minute
	maxGrace         = 10 * time.Second
)

// layout is the layout of sequencers that Run creates. No IDs are made with it:
// it has room for the node IDs of every generator.
var layout = firn.MustParseLayout("bits=time:41.node:22.seq:1,unit=1ms,epoch=2026-01-01T00:00:00Z")

// usedSlack is how far past the latest clock reading the program may have used
// its node ID: the clock is read more often than that.
const usedSlack = time.Second

// A Config configures Run.
type Config struct {
	Store     grant.Store
	Sequencer string        // whose node IDs to use
	Window    time.Duration // if the sequencer is created

	// Margin is how long before the end of the window to stop the command, up
	// to half of the window; 0 means a fifth of the window, up to 2 min.
	Margin time.Duration

	// Grace is the time between SIGTERM and SIGKILL, up to the margin; 0 means
	// half the margin, up to 10 s.
	Grace time.Duration

	grant.MemberOptions // nil Nodes mean 0 to defaultLastNode; Logger is not nil

	Command []Template // the command and its arguments; not empty
	Env     []Variable // added to Environ
	Environ []string   // as from os.Environ

	Stdin, Stdout, Stderr *os.File

	// Signals are passed on to the command. Before the command is started, a
	// signal ends Run.
	Signals <-chan os.Signal
}

// Run runs the command and returns its exit code, or one of those above with
// the reason. A code of 0 with an error means that the command was not started.
// The context bounds the time until it is started; a running command ends with
// a signal or with the window.
func Run(ctx context.Context, c Config) (code int, err error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Nodes = cmp.Or(c.Nodes, &grant.NodeRange{Hi: defaultLastNode})
	if code, err := findCommand(c.Command); err != nil {
		return code, err
	}
	info, err := prepare(ctx, &c)
	if err != nil {
		return 0, err
	}
	r := &runner{config: c, log: c.Logger.With("sequencer", c.Sequencer), changed: make(chan struct{}, 1)}
	r.keeper = grant.NewKeeper(c.Store, c.Sequencer, &info.Config, r, &c.MemberOptions)
	code, err = r.run(ctx, r.keeper)
	if closeErr := r.keeper.Close(ctx); closeErr != nil {
		r.log.Warn("node ID not released: it becomes free when its window ends", "error", closeErr)
	}
	return code, err
}

// findCommand looks for the command before a node ID is acquired for it. A name
// that contains the node ID is looked up later.
func findCommand(command []Template) (code int, err error) {
	if command[0].hasNode() {
		return 0, nil
	}
	_, err = exec.LookPath(command[0].expand(0))
	return startCode(err), err
}

// startCode returns the exit code for an error of starting a command.
func startCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	return exitNotRunnable
}

// prepare looks up or creates the sequencer, and checks that c fits it.
func prepare(ctx context.Context, c *Config) (grant.Info, error) {
	if err := grant.CheckName(c.Sequencer); err != nil {
		return grant.Info{}, &ConfigError{err.Error()}
	}
	created := grant.Config{Layout: layout, Window: c.Window} // if it does not exist
	if err := created.Check(); err != nil {
		return grant.Info{}, &ConfigError{err.Error()}
	}
	info, err := grant.LookupOrCreate(ctx, c.Store, c.Sequencer, created, &grant.CreateOptions{Now: c.Now})
	if err != nil {
		return info, err
	}
	if err := c.Nodes.Check(info.Config.Layout); err != nil {
		return info, &ConfigError{fmt.Sprintf("sequencer %s: %s", c.Sequencer, textfmt.Message(err))}
	}
	window := info.Config.Window
	switch {
	case c.Margin < 0 || c.Margin > window/2:
		return info, &ConfigError{fmt.Sprintf("margin %v: it must be at most half of the window; sequencer %s has "+
			"windows of %v", c.Margin, c.Sequencer, window)}
	case c.Grace < 0 || c.Grace > c.limits(window).margin:
		return info, &ConfigError{fmt.Sprintf("grace period %v: it must not exceed the margin, %v", c.Grace,
			c.limits(window).margin)}
	}
	return info, nil
}

// limits are the durations that follow the window.
type limits struct{ window, margin, grace, every time.Duration }

// limits returns the durations for a window. An operator may shorten it while
// the command runs (firn sequencer window), so what was given is cut to it.
func (c Config) limits(window time.Duration) limits {
	margin := cmp.Or(min(c.Margin, window/2), min(window/5, maxMargin))
	grace := cmp.Or(min(c.Grace, margin), min(margin/2, maxGrace))
	return limits{window, margin, grace, min(usedSlack/4, margin/8)}
}

// A ConfigError means that a field of a Config is invalid, or does not fit the
// sequencer.
type ConfigError struct{ text string }

func (e *ConfigError) Error() string { return e.text }

// A runner is one call of Run. It is the Holder of a Keeper, whose goroutine
// calls Begin, Extend, Stop and Used.
type runner struct {
	config Config
	log    *slog.Logger
	keeper *grant.Keeper

	changed chan struct{} // of size 1: some field below has changed

	mu      sync.Mutex // guards the fields below
	grant   firn.Grant // the zero Grant before Begin
	sealed  bool       // the node ID is not used any more
	why     error      // it is sealed
	process *process   // nil before the command is started
	latest  time.Time  // the latest clock reading while the command ran

	granted time.Duration // the length of windows when this one was granted
}

var errOtherNode = errors.New("the window could not be renewed, and a running command cannot change its node ID")

// Begin accepts only the first grant: a running command keeps the node ID that
// it was started with.
func (r *runner) Begin(g firn.Grant) error {
	r.mu.Lock()
	first := r.grant == firn.Grant{} && !r.sealed
	if first {
		r.grant, r.granted = g, r.window()
	}
	r.mu.Unlock()
	if !first {
		r.seal(errOtherNode)
		return errOtherNode
	}
	r.notify()
	return nil
}

// Extend moves the end of the window.
func (r *runner) Extend(until time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grant.Until, r.granted = until, r.window()
	return nil
}

// window returns the length of windows, as last read from the store.
func (r *runner) window() time.Duration {
	info, _ := r.keeper.Info()
	return info.Config.Window
}

// limits returns the current limits. A window that was shortened counts at
// once, because the Keeper waits with the renewal until less than that is left;
// one that became longer, once it was granted. The caller holds r.mu.
func (r *runner) limits() limits {
	return r.config.limits(min(r.granted, r.window()))
}

// Stop stops the command and waits until it has ended.
func (r *runner) Stop() { r.seal(errSealed) }

var errSealed = errors.New("the node ID was revoked: the sequencer was fenced, detached or destroyed, or " +
	"another process holds it")

func (r *runner) seal(why error) {
	r.mu.Lock()
	if !r.sealed {
		r.sealed, r.why = true, why
	}
	p, g, grace := r.process, r.grant, r.limits().grace
	r.mu.Unlock()
	if p != nil {
		p.stop(grace, func() bool { // kill at once if the time belongs to another holder
			now := r.config.Now().Round(0)
			return now.Before(g.From) || !now.Before(g.Until)
		})
	}
	r.notify()
}

// Used returns a second after the latest time at which the command may have
// used its node ID.
func (r *runner) Used() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
	if r.latest.IsZero() {
		return time.Time{}
	}
	return r.latest.Add(usedSlack)
}

// read reads the clock, and records it if the command runs. The caller holds
// r.mu.
func (r *runner) read() time.Time {
	now := r.config.Now().Round(0) // only the wall clock
	if r.process != nil && !r.process.hasEnded() && now.After(r.latest) {
		r.latest = now
	}
	return now
}

// notify wakes run.
func (r *runner) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// run acquires a node ID and runs the command under it.
func (r *runner) run(ctx context.Context, k *grant.Keeper) (code int, err error) {
	if err := k.Join(ctx); err != nil {
		return 0, err
	}
	tick := time.NewTicker(usedSlack / 4)
	defer tick.Stop()
	if err := r.acquire(ctx, k, tick.C); err != nil {
		return 0, err
	}
	p, code, err := r.start()
	if err != nil {
		return code, err
	}
	var last limits
	for {
		r.mu.Lock()
		now := r.limits()
		r.mu.Unlock()
		if now != last {
			if last.window != 0 {
				r.log.Info("window changed", "window", now.window, "margin", now.margin, "grace", now.grace)
			}
			last = now
			tick.Reset(now.every)
		}
		select {
		case <-p.ended:
			return r.result(p)
		case s := <-r.config.Signals:
			p.signal(s)
		case <-r.changed:
		case <-tick.C:
			switch due, why := r.check(k); {
			case why != nil:
				r.log.Error("stopping the command", "reason", why)
				r.seal(why)
			case due:
				// The Keeper's own timer does not follow a clock that was set
				// forward.
				soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), now.every)
				_ = k.Demand(soon) // retried at the next tick
				cancel()
			}
		}
	}
}

// acquire waits until a node ID is held and the clock is inside its window.
func (r *runner) acquire(ctx context.Context, k *grant.Keeper, tick <-chan time.Time) error {
	said := ""
	say := func(text string, args ...any) {
		if text != said {
			r.log.Warn(text, args...)
			said = text
		}
	}
	for {
		r.mu.Lock()
		g, now, sealed, margin := r.grant, r.read(), r.sealed, r.limits().margin
		r.mu.Unlock()
		status, changed := k.Status()
		switch {
		case sealed:
			return cmp.Or(status.Err, errSealed)
		case g == firn.Grant{} && status.Err != nil && grant.IsFinal(status.Err):
			return status.Err
		case g == firn.Grant{} && status.Err != nil:
			say("waiting for a node ID", "error", status.Err)
		case g == firn.Grant{}:
		case now.Before(g.From):
			say("waiting until the node ID is free by this machine's clock", "node", g.Node, "from", g.From)
		case !now.Before(g.Until.Add(-margin)):
			if err := k.Demand(ctx); err != nil {
				return err
			}
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.config.Signals:
			return context.Canceled
		case <-changed:
		case <-r.changed:
		case <-tick:
		}
	}
}

// start starts the command. Its error comes with the exit code of Run.
func (r *runner) start() (p *process, code int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		return nil, 0, r.why
	}
	node := r.grant.Node
	args := make([]string, len(r.config.Command))
	for i, t := range r.config.Command {
		args[i] = t.expand(node)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.config.Stdin, r.config.Stdout, r.config.Stderr
	cmd.Env = append([]string{}, r.config.Environ...)
	for _, v := range r.config.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value.expand(node))
	}
	r.latest = r.config.Now().Round(0)
	if p, err = startProcess(cmd, r.ended); err != nil {
		return nil, startCode(err), err
	}
	r.process = p
	r.log = r.log.With("node", node)
	r.log.Info("command started", "pid", cmd.Process.Pid, "window_until", r.grant.Until.UTC())
	return p, 0, nil
}

// ended records the clock when no process of the command's group is left,
// before the process counts as ended.
func (r *runner) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
}

// check returns whether to renew the window, and why the command must stop now,
// or nil.
func (r *runner) check(k *grant.Keeper) (due bool, why error) {
	r.mu.Lock()
	now, g, sealed, l := r.read(), r.grant, r.sealed, r.limits()
	r.mu.Unlock()
	left := g.Until.Sub(now)
	switch {
	case sealed: // it is already being stopped
	case now.Before(g.From):
		why = fmt.Errorf("this machine's clock was set back to %s, before the window begins at %s",
			textfmt.Stamp(now), textfmt.Stamp(g.From))
	case left <= 0:
		r.log.Error("the command may have used its node ID after the window ended", "from", g.Until.UTC(), "to",
			now.UTC(),
			"hint", "the machine was suspended, its clock was set forward, or firn was stopped for longer than the margin")
		why = fmt.Errorf("the window ended at %s%s", textfmt.Stamp(g.Until), because(k))
	case left <= l.margin:
		why = fmt.Errorf("the window ends at %s, within the margin of %v%s", textfmt.Stamp(g.Until), l.margin,
			because(k))
	default:
		due = left < l.window*2/3
	}
	return due, why
}

// because returns why the window was not renewed, if that is known.
func because(k *grant.Keeper) string {
	if status, _ := k.Status(); status.Err != nil {
		return ", and it was not renewed: " + status.Err.Error()
	}
	return ""
}

// hasEnded reports whether the command and everything that it started have
// ended.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// result returns the result of Run once the command has ended.
func (r *runner) result(p *process) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		return exitStopped, fmt.Errorf("command stopped: %w", r.why)
	}
	return p.code, nil
}
