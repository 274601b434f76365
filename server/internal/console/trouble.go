package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/service"
)

// A trouble is something that is wrong now.
type trouble struct {
	Name, Link string // of the sequencer or server
	State      state  // what is wrong, what it means, and what to do
	When       string // since or until when, if that is known
}

// warnBefore is the time before the last ID of a layout from which pages warn.
const warnBefore = 365 * 24 * time.Hour

// troublesOf returns what is wrong with a sequencer, the worst first. here is
// what this server knows of it, or nil.
func troublesOf(q sequencerInfo, here *metrics.Sequencer, at time.Time) (all []trouble) {
	add := func(tone, word, when, format string, args ...any) {
		all = append(all, trouble{q.Name, addressOf(q.Name),
			state{word, tone, fmt.Sprintf(format, args...)}, when})
	}
	until := func(t time.Time) string { return "until " + momentOf(t, at) + ", " + ago(t, at) }
	if q.Damage != "" {
		add("bad", "damaged", "", "%s. Do not delete the record: IDs would be handed out again.",
			strings.TrimSuffix(q.Damage, "."))
		return all
	}
	if here != nil {
		for a, n := range here.Alarms.All() {
			if n > 0 && a.MayRepeat() {
				add("bad", a.String(), "since this server started", "Some IDs may exist twice. This server's log names them.")
			}
		}
	}
	by := ""
	if l := q.Info.LastChange; l != (grant.Change{}) {
		by = fmt.Sprintf("by %s, %s", cmp.Or(l.By, "a client"), ago(l.At, at))
	}
	c := q.Info.Config
	counts, first := nodeCounts(q, at)
	end := c.Layout.End()
	begins := q.Info.Floor.Add(-c.MaxAhead)
	s := stateOf(q.Info)
	closing := q.Info.State == grant.Detaching || q.Info.State == grant.Destroying
	held, last := heldWindows(q.Nodes, at)
	switch {
	case q.Info.MovedTo != "":
		add(s.Tone, s.Word, by, "%s", s.Means)
	case closing && !q.NodesRead:
		add(s.Tone, s.Word, by, "%s", s.Means)
	case closing && held == 0:
		add(s.Tone, s.Word, by, "No server holds a node ID of it any more. If this lasts, it was interrupted: do it again.")
	case closing:
		add(s.Tone, s.Word, until(last), "It waits for %s to be given back, at the latest when their windows end.",
			plural(held, "node ID"))
	case q.Info.State == grant.Detached:
		add(s.Tone, s.Word, by, "Every request for its IDs is refused until you attach it.")
	case q.Info.State != grant.Attached:
	case !end.After(at):
		add("bad", "time over", "since "+day(end), "Layout %s has no IDs for this time.", c.Layout)
	case begins.After(at):
		add("bad", "no IDs", until(begins), "It was fenced, or created to begin then. Servers begin by themselves.")
	case q.NodesRead && counts.Free == 0:
		ends := ""
		if !first.IsZero() {
			ends = "the first window ends " + ago(first, at)
		}
		add("bad", "no node ID free", ends,
			"All node IDs are held or blocked. A server that starts now gets no IDs of it.")
	case end.Sub(at) < warnBefore:
		add("busy", "time ends", until(end), "Layout %s has no IDs after that.", c.Layout)
	}
	if n := len(q.Damaged); n > 0 {
		add("bad", "damaged", "", "%s of node IDs cannot be read. They are left unchanged, and their node IDs are not "+
			"used.", plural(uint64(n), "record"))
	}
	if here == nil || here.Err == nil || q.Info.State != grant.Attached {
		return all
	}
	f := service.ProblemOf(here.Err, 0, false)
	why := sentence(cmp.Or(f.Detail, f.Kind.String())) + "."
	if here.Problem == service.StoreUnavailable.String() {
		why = service.StoreUnavailable.Title() + ". " + why
	}
	switch {
	case f.Kind == service.Draining:
	case here.Attached && here.Problem == "":
		add("busy", "not renewed", "IDs "+until(at.Add(here.WindowLeft)), "This server cannot renew its node ID. %s", why)
	case all == nil, f.Kind == service.StoreRolledBack:
		add("bad", "no IDs here", "", "This server has no node ID. %s", why)
	}
	return all
}

// compareStates compares states by how bad they are: the worst first.
func compareStates(a, b state) int {
	tones := []string{"bad", "busy", "good", "idle"}
	return cmp.Or(cmp.Compare(slices.Index(tones, a.Tone), slices.Index(tones, b.Tone)), cmp.Compare(a.Word, b.Word))
}

// nodeCounts counts the node IDs of a sequencer.
func nodeCounts(q sequencerInfo, at time.Time) (n service.NodeCounts, first time.Time) {
	n, first, _ = service.CountNodes(q.Info, at, func(yield func(grant.NodeInfo, error) bool) error {
		for _, n := range q.Nodes {
			yield(n, nil)
		}
		for _, n := range q.Damaged {
			yield(n, grant.ErrDamaged)
		}
		return nil
	})
	return n, first
}

// heldWindows returns how many node IDs are held now, also outside the range,
// and when the last of their windows ends.
func heldWindows(nodes []grant.NodeInfo, at time.Time) (held uint64, until time.Time) {
	for _, n := range nodes {
		if n.HeldAt(at) {
			held++
		}
		if n.Held && n.Until.After(until) {
			until = n.Until
		}
	}
	return held, until
}
