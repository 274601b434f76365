package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/httpapi"
)

// newNode makes the commands about node numbers.
func newNode(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node COMMAND",
		Short: "List node numbers, and fence them after a restore",
		Long: `Every process that makes IDs of a sequencer holds one of its node numbers, for a
window of time that is written in the store and renewed as long as IDs are made.

` + storeHelp,
		Example: `  firn node list
  firn node fence orders`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return noCommand(cmd, args[0])
		},
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newNodeList(a), newNodeFence(a))
	return cmd
}

// atMostOneName takes the name of a sequencer, or none.
func atMostOneName(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return oneName(cmd, args)
}

// names are the sequencers to look at: that of the arguments, or all.
func names(ctx context.Context, s grant.Store, args []string) (names []string, err error) {
	if len(args) > 0 {
		_, err := grant.Lookup(ctx, s, args[0])
		return args, err
	}
	err = grant.Sequencers(ctx, s, func(name string, _ grant.Info, _ error) bool {
		names = append(names, name)
		return true
	})
	return names, err
}

// nodeJSON is a node number in JSON.
type nodeJSON struct {
	Sequencer string  `json:"sequencer"`
	Node      uint64  `json:"node"`
	State     string  `json:"state"`
	Host      string  `json:"host"`
	Owner     string  `json:"owner"`
	Until     string  `json:"until"`
	Left      float64 `json:"left_seconds"`
	Written   string  `json:"written"`
	Ahead     float64 `json:"clock_ahead_seconds"`
	Error     string  `json:"error,omitempty"`
}

// stateOf is what a node number is, as a word.
func stateOf(n grant.NodeInfo, now time.Time) string {
	switch {
	case !n.Held:
		return "free"
	case n.Until.Before(now):
		return "over"
	case n.Closing:
		return "closing"
	}
	return "held"
}

func newNodeList(a *app) *cobra.Command {
	var store string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "list [SEQUENCER]",
		Short: "Show who holds which node number, until when",
		Long: `List shows who holds which node number, until when, and how much of the window is
left. A window is renewed while IDs are made; one that is over belonged to a
process that makes none, or is gone, and its number may be taken by another.

WRITTEN is how long ago the owner wrote that, by its own clock; where it is in
the future, that clock is ahead of this one.

` + storeHelp,
		Example: "  firn node list\n  firn node list orders --all --json",
		Args:    atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), store, false, func(s grant.Store) error {
				ctx := cmd.Context()
				list, err := names(ctx, s, args)
				if err != nil {
					return err
				}
				t := table{head: []string{"SEQUENCER", "NODE", "STATE", "HOST", "UNTIL", "LEFT", "WRITTEN"}, right: map[int]bool{1: true, 5: true}}
				hidden, broken := 0, false
				now := a.now()
				for _, name := range list {
					var written error
					err := grant.Nodes(ctx, s, name, func(n grant.NodeInfo, err error) bool {
						state := stateOf(n, now)
						switch {
						case err != nil && asJSON:
							broken = true
							written = a.printJSON(struct {
								Sequencer string `json:"sequencer"`
								Node      uint64 `json:"node"`
								Error     string `json:"error"`
							}{name, n.Node, err.Error()})
						case err != nil:
							broken = true
							a.complain(name, err)
						case (state == "free" || state == "over") && !all:
							hidden++
						case asJSON:
							written = a.printJSON(nodeJSON{
								Sequencer: name, Node: n.Node, State: state, Host: n.Host, Owner: n.Owner,
								Until: httpapi.Stamp(n.Until), Left: max(0, n.Until.Sub(now).Seconds()),
								Written: httpapi.Stamp(n.Wall), Ahead: max(0, n.Wall.Sub(now).Seconds()),
							})
						default:
							t.add(name, strconv.FormatUint(n.Node, 10), state, n.Host, httpapi.Stamp(n.Until), left(n.Until.Sub(now)), ago(now.Sub(n.Wall)))
						}
						return written == nil
					})
					if err := firstError(written, err); err != nil {
						return err
					}
				}
				if !asJSON && len(t.rows) > 0 {
					t.print(a.stdout, a.lookOf(a.stdout))
				}
				if !asJSON && hidden > 0 {
					a.note("%d more were used before and are free; --all shows them", hidden)
				} else if !asJSON && len(t.rows) == 0 && !broken {
					a.note("no node number was ever used")
				}
				if broken {
					return answerNo()
				}
				return nil
			})
		},
	}
	storeVar(cmd, &store)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also those that nobody holds")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// left is how much of a window is left.
func left(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return d.Round(100 * time.Millisecond).String()
}

// ago is how long ago something was.
func ago(d time.Duration) string {
	if d < 0 {
		return "in " + (-d).Round(100*time.Millisecond).String()
	}
	return d.Round(100*time.Millisecond).String() + " ago"
}

func newNodeFence(a *app) *cobra.Command {
	var (
		store                        string
		apply, all, anyClock, asJSON bool
		skew                         = 10 * time.Second
	)
	cmd := &cobra.Command{
		Use:   "fence SEQUENCER | --all",
		Short: "Make node numbers safe after the store was restored",
		Long: `Fence must be run after the store was restored from a backup, or lost writes in a
failover, before IDs are made again. It rewrites the record of every node number,
so that no process can go on from what it held before, and sets a floor above all
windows that may have been granted since the backup.

Without --apply it only says what it would do. Members take node numbers again
when the floor is near: after two windows and --skew. It can be run again at any
time; that costs that wait, and nothing else.

` + storeHelp,
		Example: "  firn node fence orders\n  firn node fence --all --apply",
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return misuse("", "either --all or a name, not both")
			}
			if all {
				return nil
			}
			return oneName(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), store, false, func(s grant.Store) error {
				ctx := cmd.Context()
				list, err := names(ctx, s, args)
				if err != nil {
					return err
				}
				var failures error
				damaged := 0
				for i, name := range list {
					if i > 0 && !asJSON {
						fmt.Fprintln(a.stdout)
					}
					r, err := grant.Fence(ctx, s, name, &grant.FenceOptions{DryRun: !apply, Skew: skew, AnyClock: anyClock, Now: a.now})
					if err != nil && strings.Contains(err.Error(), "allow it explicitly") {
						err = failed("is the clock right (date -u)? --any-clock fences all the same", "%w", err)
					}
					if err != nil && len(list) > 1 && ctx.Err() == nil {
						// The others need it no less.
						a.complain("", err)
						failures = firstError(failures, failed("set that right, and run it again: those above it that are told as rewritten are fenced", "not all sequencers could be fenced"))
						continue
					}
					if err != nil {
						return err
					}
					if err := a.printFence(r, apply, asJSON); err != nil {
						return err
					}
					damaged += len(r.Damaged)
				}
				switch {
				case len(list) == 0:
					a.note("there is no sequencer in this store, and nothing to fence")
				case !apply:
					a.note("nothing was written; --apply does it")
				}
				if failures == nil && damaged > 0 {
					return answerNo()
				}
				return failures
			})
		},
	}
	storeVar(cmd, &store)
	cmd.Flags().BoolVar(&apply, "apply", false, "do it, and do not only say what would be done")
	cmd.Flags().BoolVar(&all, "all", false, "all sequencers of the store")
	cmd.Flags().DurationVar(&skew, "skew", skew, "how far the clocks of members may differ")
	cmd.Flags().BoolVar(&anyClock, "any-clock", false, "also where the clock is far from the marks")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per sequencer")
	return cmd
}

func (a *app) printFence(r grant.FenceReport, applied, asJSON bool) error {
	if asJSON {
		return a.printJSON(struct {
			Sequencer string `json:"sequencer"`
			Applied   bool   `json:"applied"`
			Floor     string `json:"floor"`
			Records   int    `json:"records"`
			Held      int    `json:"held"`
			Damaged   int    `json:"damaged"`
		}{r.Sequencer, applied, httpapi.Stamp(r.Floor), r.Nodes, len(r.Held), len(r.Damaged)})
	}
	var t rows
	t.add("sequencer", "%s", r.Sequencer)
	t.add("records", "%d to rewrite, %d of them held now", r.Nodes, len(r.Held))
	if applied {
		t.values[len(t.values)-1] = fmt.Sprintf("%d rewritten, %d of them were held", r.Nodes, len(r.Held))
	}
	wait := max(0, r.Floor.Sub(a.now())).Round(time.Second)
	t.add("floor", "%s: members take numbers again about %v from now", httpapi.Stamp(r.Floor), wait)
	if !applied {
		t.values[len(t.values)-1] = fmt.Sprintf("%s: members would wait about %v for a number", httpapi.Stamp(r.Floor), wait)
	}
	for _, err := range r.Damaged {
		t.add("damaged", "%s, and left as it is: nobody can take that number", strings.TrimPrefix(err.Error(), "grant: "))
	}
	t.print(a.stdout, a.lookOf(a.stdout))
	return nil
}
