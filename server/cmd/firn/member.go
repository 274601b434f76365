package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/operate/members"
)

// newMember makes the commands about servers.
func newMember(a *app) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "member COMMAND",
		Short: "List the servers of a store",
		Long: `Servers of one store announce themselves in it every 10 seconds.

  firn member list

Programs that use the store without a server, such as firn next, do not announce
themselves: firn node list shows them too.`,
		Example: "  firn member list",
	}, newMemberList(a))
}

func newMemberList(a *app) *cobra.Command {
	return a.onStore(&cobra.Command{
		Use:   "list",
		Short: "List the servers of the store",
		Long: `List shows the servers that have announced themselves in the store.

  firn member list --store etcd://etcd:2379

It prints the address for other servers, the version, the uptime, the number of node IDs
held, and the number of IDs made. SEEN is how long ago a server wrote this, by its own
clock. A server that crashed is listed for up to 30 seconds.`,
		Args: noArgs,
	}, false, "print one JSON object per line", func(ctx context.Context, s grant.Store, _ []string, asJSON bool) error {
		now := a.now()
		all, err := members.List(ctx, s, now)
		if err != nil {
			return err
		}
		l := a.list(asJSON, "HOST", "SERVER", "VERSION", "RUNS FOR", "SEEN", "NODES", "IDS", "IDS/S")
		l.right = map[int]bool{3: true, 5: true, 6: true, 7: true}
		for _, m := range all {
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
			l.add(m, m.Host, serverOf(m), cmp.Or(m.Version, "-"), now.Sub(m.Started).Round(time.Second).String(),
				agoText(now.Sub(m.Seen)), nodes, groupDigits(m.IDs), groupDigits(uint64(m.Rate)))
		}
		return l.end("no server of this store is running; start one with firn serve")
	})
}

// serverOf identifies a server among those of its host: by its address, or by
// the beginning of its ID if it has none.
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

// holders returns the servers that hold node IDs. If a server holds more node
// IDs than fit into its record, only the first of them are found.
func (a *app) holders(ctx context.Context, s grant.Store) map[holding]string {
	all, err := members.List(ctx, s, a.now())
	if err != nil {
		a.note("cannot find out which servers hold them: %v", err)
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
