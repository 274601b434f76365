package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/members"
)

// newMember makes the commands about servers.
func newMember(a *app) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "member COMMAND",
		Short: "List the servers of a store",
		Long: `Servers of one store announce themselves in it, every 10 seconds. Programs that use
the store without a server, such as firn next, do not: firn node list shows these too.

` + storeHelp,
		Example: "  firn member list",
	}, newMemberList(a))
}

func newMemberList(a *app) *cobra.Command {
	return a.onStore(&cobra.Command{
		Use:   "list",
		Short: "List the servers of the store",
		Long: `List shows the servers that have announced themselves in the store: where other
servers reach them, their version, how long they run, how many node IDs they hold,
and how many IDs they have made. SEEN is how long ago a server wrote that, by its own
clock. A server that crashed is listed for up to 30 seconds.

` + storeHelp,
		Example: "  firn member list\n  firn member list --json",
		Args:    noArgs,
	}, false, "print one JSON object per line", func(ctx context.Context, s grant.Store, _ []string, asJSON bool) error {
		now := a.now()
		all, err := members.NewLister(s).List(ctx, now)
		if err != nil {
			return err
		}
		t := table{
			head:  []string{"HOST", "SERVER", "VERSION", "RUNS FOR", "SEEN", "NODES", "IDS", "IDS/S"},
			right: map[int]bool{3: true, 5: true, 6: true, 7: true},
		}
		for _, m := range all {
			if asJSON {
				if err := a.printJSON(m); err != nil {
					return err
				}
				continue
			}
			held := 0
			for _, h := range m.Holds {
				if h.Until.After(now) {
					held++
				}
			}
			nodes := strconv.Itoa(held)
			if len(m.Holds) == members.MaxHeld {
				nodes += " or more"
			}
			t.add(m.Host, serverOf(m), cmp.Or(m.Version, "-"), now.Sub(m.Started).Round(time.Second).String(), ago(now.Sub(m.Seen)), nodes, group(m.IDs), group(uint64(m.Rate)))
		}
		switch {
		case asJSON:
		case len(t.rows) == 0:
			a.note("no server of this store runs; firn serve starts one")
		default:
			t.print(a.stdout, a.lookOf(a.stdout))
		}
		return nil
	})
}

// serverOf names a server among those of its host: its address, or the
// beginning of its ID if it has none.
func serverOf(m members.Member) string {
	if m.Address != "" {
		return m.Address
	}
	return "id:" + m.ID[:min(8, len(m.ID))]
}

// A holding is a node ID of a sequencer.
type holding struct {
	sequencer string
	node      uint64
}

// holders are the servers that hold node IDs. Servers with more node IDs than
// their records have room for are found for the first of them.
func (a *app) holders(ctx context.Context, s grant.Store) map[holding]string {
	all, err := members.NewLister(s).List(ctx, a.now())
	if err != nil {
		a.note("which servers hold them is unknown: %v", err)
		return nil
	}
	by := make(map[holding]string)
	for _, m := range all {
		for _, h := range m.Holds {
			by[holding{h.Sequencer, h.Node}] = serverOf(m)
		}
	}
	return by
}
