package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/layouts"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/config"
	"github.com/firnid/firn/server/internal/operate/doctor"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
)

// newSequencer makes the commands for whole sequencers.
func newSequencer(a *app) *cobra.Command {
	return parent(command("sequencer", nil, nil),
		newSequencerCreate(a),
		newSequencerList(a),
		newSequencerChange(a, "show", grant.Lookup),
		newSequencerChange(a, "attach", grant.Attach),
		newSequencerWaitingChange(a, "detach", false, grant.Detach),
		newSequencerWaitingChange(a, "destroy", true, grant.Destroy),
		newSequencerNodes(a),
		newSequencerWindow(a),
		newSequencerMove(a),
		newSequencerPurge(a),
	)
}

func newSequencerCreate(a *app) *cobra.Command {
	q := sequencer.Options{Layout: firn.Default()}
	var window *time.Duration
	var floor time.Time
	run := func(ctx context.Context, s grant.Store, args []string, asJSON bool) error {
		if floor.Year() >= 2100 {
			return misuse("", "no ID can be made above %s: the time must be before 2100", textfmt.Stamp(floor))
		}
		c := q.Config(s)
		c.Window = *cmp.Or(window, &c.Window) // 0 is not the default: it is too short
		c.Nodes = q.Nodes
		if err := c.Check(); err != nil {
			return misuse("", "%w", err)
		}
		return a.create(ctx, s, args[0], c, floor, asJSON)
	}
	cmd := a.onStore("sequencer create", oneName, true, run)
	layoutVar(cmd, &q.Layout, parseGeneratedLayout, "layout of the IDs")
	prefixVar(cmd, &q.Prefix, "prefix of the IDs as typed text, such as order (default none)")
	nodesVar(cmd, &q.Nodes, "node IDs that members of this store may take (default all of the layout)")
	timeVar(cmd, a, &floor, "floor",
		"time before which it makes no IDs, such as that of another generator's last ID (default none)")
	durationVar(cmd, &q.MaxAhead, "max-ahead", "how far IDs may run ahead of the clock in a burst (default the layout's)")
	durationVar(cmd, &window, "window",
		"how long a node ID is held without the store "+
			"(default 30s in a directory, 10m in a bucket or Kubernetes, 60s elsewhere)")
	return cmd
}

// create creates a sequencer and prints it.
func (a *app) create(ctx context.Context, s grant.Store, name string, c grant.Config, floor time.Time,
	asJSON bool) error {
	info, err := grant.Create(ctx, s, name, c, &grant.CreateOptions{Now: a.now, Floor: floor})
	a.audit(ctx, s, "create", name, err)
	if err == nil {
		a.printInfo(info, asJSON)
	}
	return err
}

// printInfo prints a sequencer.
func (a *app) printInfo(i grant.Info, asJSON bool) {
	if asJSON {
		a.printJSON(httpapi.NewSequencerJSON(i))
		return
	}
	var r rows
	r.add("sequencer", "%s", i.Name)
	r.add("state", "%s", i.State)
	r.add("layout", "%s", i.Config.Layout)
	if i.Config.Prefix != "" {
		r.add("prefix", "%s", i.Config.Prefix)
	}
	if all := layouts.CountNodes(i.Config.Layout, groupDigits); i.Config.Nodes == nil {
		r.add("nodes", "%s", all)
	} else {
		r.add("nodes", "%v of %s", i.Config.Nodes, all)
	}
	r.add("max ahead", "%v", i.Config.MaxAhead)
	r.add("window", "%s", windowOf(i))
	if i.State < grant.Destroyed {
		r.add("time ends", "%s", inspect.Stamp(i.Config.Layout.End(), i.Config.Layout.Unit()))
	}
	r.add("created", "%s, incarnation %d", textfmt.Stamp(i.Created), i.Incarnation)
	if c := i.LastChange; c != (grant.Change{}) {
		r.add("last change", "%s by %s, %s", c.What, c.By, textfmt.Stamp(c.At))
	}
	if i.MovedTo != "" {
		r.add("moved to", "%s", i.MovedTo)
	}
	if !i.Floor.IsZero() {
		r.add("floor", "no grant begins before %s", textfmt.Stamp(i.Floor))
	}
	r.print(a.stdout, a.style())
}

// windowOf returns the window of a sequencer, and the longest that it ever had
// if that differs.
func windowOf(i grant.Info) string {
	if i.LongestWindow != i.Config.Window {
		return fmt.Sprintf("%v (longest %v)", i.Config.Window, i.LongestWindow)
	}
	return i.Config.Window.String()
}

func newSequencerList(a *app) *cobra.Command {
	run := func(ctx context.Context, s grant.Store, _ []string, asJSON bool) error {
		var commands []string
		l := a.list(asJSON, "SEQUENCER", "STATE", "LAYOUT", "MAX AHEAD", "WINDOW")
		err := grant.Sequencers(ctx, s, func(i grant.Info, err error) bool {
			if err != nil {
				l.damaged(i.Name, err, map[string]any{"name": i.Name})
				return true
			}
			state := i.State.String()
			if i.MovedTo != "" {
				state = "moved to " + i.MovedTo
			}
			commands = append(commands, recreation(i)...)
			l.add(httpapi.NewSequencerJSON(i), i.Name, state, i.Config.Layout.String(), i.Config.MaxAhead.String(), windowOf(i))
			return true
		})
		if err != nil {
			return err
		}
		err = l.end("no sequencers yet; create one with firn sequencer create NAME; firn next creates its own")
		if !asJSON && len(commands) > 0 {
			fmt.Fprintf(a.stdout, "\n%s\n", strings.Join(commands, "\n"))
		}
		return err
	}
	return a.onStore("sequencer list", noArgs, false, run)
}

// recreation returns the commands that create a sequencer as it is in a
// restored store that lacks it, and then fence it: the first has the whole
// configuration, the second the longest window, which no creation sets.
func recreation(i grant.Info) []string {
	c := i.Config
	create := fmt.Sprintf("firn sequencer create %s --layout %s --max-ahead %v --window %v", i.Name, c.Layout,
		c.MaxAhead, c.Window)
	if c.Nodes != nil {
		create += fmt.Sprintf(" --nodes %v", c.Nodes)
	}
	if !i.Floor.IsZero() {
		create += " --floor " + textfmt.Stamp(i.Floor)
	}
	if c.Prefix != "" {
		create += " --prefix " + c.Prefix
	}
	fence := fmt.Sprintf("firn node fence %s --longest-window %v --apply", i.Name, i.LongestWindow)
	switch {
	case i.MovedTo != "":
		return []string{fmt.Sprintf("# %s was moved to %s, and is not created here", i.Name, i.MovedTo)}
	case i.State != grant.Attached:
		return []string{fmt.Sprintf("# %s is %v: %s; %s", i.Name, i.State, create, fence)}
	}
	return []string{create, fence}
}

// newSequencerChange makes a command that shows or changes a sequencer at once.
func newSequencerChange(a *app, name string, change func(context.Context, grant.Store, string) (grant.Info, error),
) *cobra.Command {
	run := func(ctx context.Context, s grant.Store, args []string, asJSON bool) error {
		info, err := change(ctx, s, args[0])
		if name != "show" {
			a.audit(ctx, s, name, args[0], err)
		}
		if err != nil {
			return err
		}
		a.printInfo(info, asJSON)
		if info.MovedTo != "" || info.State != grant.Detached && info.State != grant.Destroyed {
			return nil
		}
		return a.handOver(ctx, s, info, name == "destroy")
	}
	return a.onStore("sequencer "+name, oneName, false, run)
}

// handOver says when the node IDs of a sequencer that makes no more IDs may be
// used elsewhere, and may wait for that.
func (a *app) handOver(ctx context.Context, s grant.Store, i grant.Info, wait bool) error {
	at, err := grant.HandOverTime(ctx, s, i, func(uint64) bool { return true })
	if err != nil {
		return fmt.Errorf("sequencer %s is %s, but no other store or generator may use its node IDs yet: %w",
			i.Name, i.State, err)
	}
	left := at.Sub(a.now())
	if left <= 0 {
		return nil
	}
	text := fmt.Sprintf("sequencer %s is %s; its IDs may reach up to %s: another store or generator may use "+
		"its node IDs from then on", i.Name, i.State, textfmt.Stamp(at))
	if wait && left > 2*i.LongestWindow+grant.MaxSkew {
		return failed("", "%s", text)
	}
	a.note("%s", text)
	if !wait {
		return nil
	}
	if err := a.checkLead(ctx, s); err != nil {
		return err
	}
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newSequencerWaitingChange makes a command that waits until members have given
// their node IDs back.
func newSequencerWaitingChange(a *app, name string, confirm bool,
	change func(context.Context, grant.Store, string, *grant.WaitOptions) (grant.Info, error)) *cobra.Command {
	yes := !confirm
	cmd := newSequencerChange(a, name, func(ctx context.Context, s grant.Store, q string) (grant.Info, error) {
		if err := a.confirm(yes, q, name); err != nil {
			return grant.Info{}, err
		}
		info, err := change(ctx, s, q, &grant.WaitOptions{Now: a.now, Waiting: a.tellWaiting(ctx, s, q)})
		if ctx.Err() != nil && err != nil && info.Name != "" {
			a.note("sequencer %s remains %s and grants no new windows; run firn sequencer %s %s to continue",
				info.Name, info.State, name, info.Name)
		}
		return info, err
	})
	if confirm {
		cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	}
	return cmd
}

// tellWaiting returns what prints what an operation waits for.
func (a *app) tellWaiting(ctx context.Context, s grant.Store, name string) func([]grant.Wait) {
	return func(waiting []grant.Wait) {
		if slices.Contains(slices.Collect(maps.Values(doctor.Blocked(ctx, s, name, a.now))), true) {
			a.note("node IDs are blocked by a clock far ahead; firn node repair %s --apply ends the wait for them", name)
		}
		for i, w := range waiting {
			if i == 4 && len(waiting) > 5 {
				a.note("… and %d more", len(waiting)-i)
				break
			}
			a.note("waiting for %v", w)
		}
	}
}

// confirm asks for the name of the sequencer. Without a terminal, --yes is
// needed.
func (a *app) confirm(yes bool, name, what string) error {
	if yes {
		return nil
	}
	if !isTerminal(a.stderr) {
		return misuse(fmt.Sprintf("add --yes to %s %s without confirmation", what, name),
			"firn sequencer %s %s needs a terminal to ask for confirmation", what, name)
	}
	fmt.Fprintf(a.stderr, "To %s it, type the name of the sequencer (%s): ", what, name)
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if strings.TrimSpace(line) != name {
		if err != nil {
			return failed("", "no name was typed: nothing was done")
		}
		return refused("", "the name does not match: nothing was done")
	}
	return nil
}

func newSequencerNodes(a *app) *cobra.Command {
	var nodes *grant.NodeRange
	cmd := newSequencerChange(a, "nodes", func(ctx context.Context, s grant.Store, name string) (grant.Info, error) {
		if err := a.checkLead(ctx, s); err != nil && nodes != nil {
			return grant.Info{}, err
		}
		return grant.SetNodes(ctx, s, name, nodes,
			&grant.WaitOptions{Now: a.now, Waiting: a.tellWaiting(ctx, s, name)})
	})
	cmd.Args = nameAnd("the range of node IDs", func(s string) (err error) {
		if s != "all" {
			nodes, err = config.ParseNodes(s)
		}
		return err
	})
	return cmd
}

// nameAnd requires the name of a sequencer, and a value that parse accepts.
func nameAnd(what string, parse func(string) error) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := wantArgs("a name and "+what, 0, 2)(cmd, args); err != nil {
			return err
		}
		name := args[:min(len(args), 1)]
		if err := oneName(cmd, name); err != nil {
			return err
		}
		if err := wantArgs(what, 1, 1)(cmd, args[1:]); err != nil {
			return err
		}
		if err := parse(args[1]); err != nil {
			return misuse("", "%w", err)
		}
		return nil
	}
}

func newSequencerWindow(a *app) *cobra.Command {
	var window time.Duration
	cmd := newSequencerChange(a, "window", func(ctx context.Context, s grant.Store, name string) (grant.Info, error) {
		return grant.SetWindow(ctx, s, name, window)
	})
	cmd.Args = nameAnd("the window", func(s string) (err error) {
		if window, err = time.ParseDuration(s); err != nil {
			err = fmt.Errorf("window %q: write a duration such as 30s or 10m", s)
		}
		return err
	})
	return cmd
}

func newSequencerPurge(a *app) *cobra.Command {
	var yes bool
	cmd := newSequencerChange(a, "purge", func(ctx context.Context, s grant.Store, name string) (grant.Info, error) {
		// Look at its state first: there may be nothing to confirm.
		info, err := grant.Lookup(ctx, s, name)
		if err != nil {
			return info, err
		}
		if info.State != grant.Destroyed && info.State != grant.Purged {
			return info, refused("destroy it first: firn sequencer destroy "+name,
				"sequencer %s is %s: only a destroyed sequencer can be purged", name, info.State)
		}
		a.note("after a purge, %s can be created with another layout, and its IDs may then equal earlier ones", name)
		if err := a.confirm(yes, name, "purge"); err != nil {
			return info, err
		}
		return grant.Purge(ctx, s, name)
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}
