package main

import (
	"context"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/fleet/members"
)

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
	all, err := members.NewLister(s).List(ctx, a.now())
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
