package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/doctor"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/service"
)

// newNode makes the commands about node IDs.
func newNode(a *app) *cobra.Command {
	return parent(command("node", nil, nil), newNodeList(a), newNodeFence(a), newNodeRepair(a), newNodeRun(a))
}

// atMostOneName takes the name of a sequencer, or none.
func atMostOneName(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return oneName(cmd, args)
}

// sequencerNames returns the sequencers to look at: the one in the arguments,
// or all.
func sequencerNames(ctx context.Context, s grant.Store, args []string) (names []string, err error) {
	if len(args) > 0 {
		_, err := grant.Lookup(ctx, s, args[0])
		return args, err
	}
	err = grant.Sequencers(ctx, s, func(i grant.Info, _ error) bool {
		names = append(names, i.Name)
		return true
	})
	return names, err
}

func newNodeList(a *app) *cobra.Command {
	var all bool
	run := func(ctx context.Context, s grant.Store, args []string, asJSON bool) error {
		names, err := sequencerNames(ctx, s, args)
		if err != nil {
			return err
		}
		l := nodeList{
			listing: a.list(asJSON, "SEQUENCER", "NODE", "STATE", "HOST", "SERVER", "UNTIL", "LEFT", "WRITTEN"),
			store:   s, all: all, now: a.now(), servers: a.holders(ctx, s),
		}
		l.right = map[int]bool{1: true, 6: true}
		if by, _, _ := doctor.ClockLead(ctx, s, a.now); by.Abs() > grant.MaxSkew {
			a.note("this machine's clock is %s the store's: compare both with a time server", doctor.AheadOf(by))
		}
		for _, name := range names {
			if err := l.sequencer(ctx, name); err != nil {
				return err
			}
		}
		return l.finish()
	}
	cmd := a.onStore("node list", atMostOneName, false, run)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "include node IDs that are not held")
	return cmd
}

// A nodeList prints the node IDs of sequencers.
type nodeList struct {
	listing
	store   grant.Store
	all     bool
	now     time.Time
	servers map[members.Held]string
	hidden  int // free ones that are not shown
}

// sequencer adds the node IDs of a sequencer.
func (l *nodeList) sequencer(ctx context.Context, name string) error {
	blocked := doctor.Blocked(ctx, l.store, name, l.app.now)
	repairable := 0
	err := grant.Nodes(ctx, l.store, name, func(n grant.NodeInfo, err error) bool {
		free, isBlocked := blocked[n.Node]
		if free {
			repairable++
		}
		l.node(name, n, err, isBlocked)
		return true
	})
	if err != nil {
		return err
	}
	if len(blocked) > 0 && !l.asJSON {
		l.app.note("sequencer %s: node IDs blocked by a clock far ahead: %d; firn node repair %s gives back %d of them",
			name, len(blocked), name, repairable)
	}
	return nil
}

// node adds a node ID, or what is wrong with its record.
func (l *nodeList) node(sequencer string, n grant.NodeInfo, err error, isBlocked bool) {
	state := service.NodeState(n, l.now)
	server := ""
	if state == "held" || state == "closing" {
		server = l.servers[members.Held{Sequencer: sequencer, Node: n.Node}]
	}
	switch {
	case err != nil:
		l.damaged(sequencer, err, map[string]any{"sequencer": sequencer, "node": n.Node})
	case (state == "free" || state == "over") && !l.all && !isBlocked:
		l.hidden++
	default:
		until := textfmt.Stamp(n.Until)
		v := map[string]any{
			"sequencer": sequencer, "node": n.Node, "state": state, "host": n.Host, "owner": n.Owner,
			"until": until, "left_seconds": max(0, n.Until.Sub(l.now).Seconds()),
			"written": textfmt.Stamp(n.Written), "clock_ahead_seconds": max(0, n.Written.Sub(l.now).Seconds()),
		}
		if server != "" {
			v["server"] = server // its holder, if it is a known server
		}
		if isBlocked {
			v["blocked"] = true // until then, by a clock that was far ahead
			state = "blocked"
		}
		l.add(v, sequencer, strconv.FormatUint(n.Node, 10), state, n.Host, cmp.Or(server, "-"),
			until, textfmt.Left(n.Until.Sub(l.now)), textfmt.Ago(l.now.Sub(n.Written)))
	}
}

// finish prints the table, and notes what it leaves out.
func (l *nodeList) finish() error {
	if l.hidden == 0 {
		return l.end("no node ID was ever used")
	}
	err := l.end("")
	if !l.asJSON {
		l.app.note("%d more are free but were used before; use --all to show them", l.hidden)
	}
	return err
}
