package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/members"
)

// newMember makes the commands about servers.
func newMember(a *app) *cobra.Command {
	return parent(command("member", nil, nil), newMemberList(a))
}

func newMemberList(a *app) *cobra.Command {
	run := func(ctx context.Context, s grant.Store, _ []string, asJSON bool) error {
		now := a.now()
		all, err := members.List(ctx, s, now)
		if err != nil {
			return err
		}
		l := a.list(asJSON, "HOST", "SERVER", "VERSION", "RUNS FOR", "SEEN", "NODES", "IDS", "IDS/S")
		l.right = map[int]bool{3: true, 5: true, 6: true, 7: true}
		for _, m := range all {
			held, atLeast := m.HeldAt(now)
			nodes := strconv.Itoa(held)
			if atLeast {
				nodes += " or more"
			}
			l.add(m, m.Host, m.Name(), cmp.Or(m.Version, "-"), now.Sub(m.Started).Round(time.Second).String(),
				textfmt.Ago(now.Sub(m.Seen)), nodes, groupDigits(m.IDs), groupDigits(uint64(m.Rate)))
		}
		return l.end("no server of this store is running; start one with firn serve")
	}
	return a.onStore("member list", noArgs, false, run)
}

// holders returns the names of the servers that hold node IDs.
func (a *app) holders(ctx context.Context, s grant.Store) map[members.Held]string {
	all, err := members.List(ctx, s, a.now())
	if err != nil {
		a.note("cannot find out which servers hold them: %v", err)
	}
	return members.Holders(all)
}
