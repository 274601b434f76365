package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

func newNodeRepair(a *app) *cobra.Command {
	m := &applyCmd{verb: "repair", participle: "repaired", skew: grant.MaxSkew}
	return m.command(a, func(ctx context.Context, s grant.Store, name string) (bool, error) {
		r, err := grant.Repair(ctx, s, name, &grant.RepairOptions{DryRun: !m.apply, Now: a.now})
		if m.apply && (err != nil || len(r.Nodes) > 0) {
			a.audit(ctx, s, "repair", name, err)
		}
		if err != nil {
			return false, err
		}
		a.printRepair(name, r, m)
		return len(r.Left)+len(r.Damaged) == 0, nil
	})
}

func (a *app) printRepair(name string, r grant.RepairReport, m *applyCmd) {
	if m.asJSON {
		blocked := func(n grant.NodeInfo) map[string]any {
			return map[string]any{"node": n.Node, "host": n.Host, "owner": n.Owner, "until": textfmt.Stamp(n.Until)}
		}
		repaired, left := make([]any, len(r.Nodes)), make([]any, len(r.Left))
		for i, n := range r.Nodes {
			node := blocked(n.NodeInfo)
			node["from"], node["to"], node["kept_until"] = textfmt.Stamp(n.From), textfmt.Stamp(n.To), textfmt.Stamp(n.Kept)
			repaired[i] = node
		}
		for i, n := range r.Left {
			left[i] = blocked(n)
		}
		a.printJSON(map[string]any{
			"sequencer": name, "applied": m.apply, "repaired": repaired, "left": left, "damaged": len(r.Damaged),
		})
		return
	}
	var t rows
	t.add("sequencer", "%s", name)
	t.add("node IDs", "%d blocked, %d of which can be given back", len(r.Nodes)+len(r.Left), len(r.Nodes))
	blocked := func(n grant.NodeInfo) (key string) {
		key = fmt.Sprintf("node %d", n.Node)
		t.add(key, "blocked until %s by host %s, owner %s", textfmt.Stamp(n.Until), cmp.Or(n.Host, "unknown"),
			cmp.Or(n.Owner, "unknown"))
		return key
	}
	for _, n := range r.Nodes {
		key := blocked(n.NodeInfo)
		t.add(key, "gives back %s to %s", textfmt.Stamp(n.From), textfmt.Stamp(n.To))
		t.add(key, "keeps %s to %s, which no member uses again", textfmt.Stamp(n.To), textfmt.Stamp(n.Kept))
	}
	for _, n := range r.Left {
		t.add(blocked(n),
			"cannot be given back: no unused time is left before that. Members acquire other node IDs until then")
	}
	t.addDamaged(r.Damaged)
	t.print(a.stdout, a.style())
}
