package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/service"
)

// A sequencerPage shows everything that is known about one sequencer.
type sequencerPage struct {
	Name     string
	Now      time.Time
	Store    storeNote
	Static   bool // this server has no store
	State    state
	Troubles []trouble
	Info     grant.Info
	Layout   firn.Layout // zero if it is unknown
	Nodes    service.NodeCounts
	Rows     []nodeRow
	More     int
	Here     *metrics.Sequencer
	Maker    bool
	Admin    bool
	Actions  []action
}

// A nodeRow is a node ID in the list.
type nodeRow struct {
	Node   uint64
	Server string
	State  state
	Until  time.Time
	Here   bool
}

// maxNodeRows is how many node IDs the page shows.
const maxNodeRows = 100

// sequencer shows the page of one sequencer.
func (k *Console) sequencer(v *visit) {
	name := v.r.PathValue("name")
	if err := service.CheckName(name); err != nil {
		v.fail(http.StatusBadRequest, "Invalid sequencer name", detail(err)+".")
		return
	}
	if !v.who.MayRead(name) {
		v.forbidden("You may not see the sequencer " + name + ".")
		return
	}
	p, err := k.sequencerNow(v, name)
	if err != nil && p.Store.Error == "" {
		v.failWith(err, false)
		return
	}
	status := http.StatusOK
	if err != nil {
		status = http.StatusServiceUnavailable
	}
	v.show(status, page{Title: name, Section: "overview", Live: true}, p.view())
}

// sequencerNow returns what is known about a sequencer. If the store does not
// answer and never did, it returns an error, and the page shows why.
func (k *Console) sequencerNow(v *visit, name string) (p sequencerPage, err error) {
	p = sequencerPage{Name: name, Now: v.now, Maker: v.who.may(auth.Take, name), Admin: v.who.may(auth.Change, name),
		Static: k.admin == nil}
	for _, f := range k.config.Figures() {
		if f.Name == name {
			p.Here = &f
		}
	}
	if p.Static {
		s := k.front.Backend.Opened(name)
		if p.Here == nil || s == nil {
			return p, errNoSequencer
		}
		p.State, p.Layout = staticState, s.Layout
		return p, nil
	}
	q, s, err := k.snapshots.lookup(v.r.Context(), name)
	p.Store = noteOf(s)
	if err != nil {
		p.State = state{"unknown", "bad", ""}
		return p, err
	}
	p.Info, p.State, p.Troubles = q.Info, states[q.Info.State], troublesOf(q, p.Here, v.now)
	if q.Damage != "" {
		p.State = p.Troubles[0].State
		return p, nil
	}
	p.Layout = q.Info.Config.Layout
	p.Nodes, _ = nodeCounts(q, v.now)
	p.addNodes(q, s, v.now)
	for _, verb := range actionsOf[q.Info.State] {
		p.Actions = append(p.Actions, actions[verb])
	}
	return p, nil
}

// addressOf returns the address of a sequencer's page.
func addressOf(name string) string { return "/sequencers/" + url.PathEscape(name) }

// A storeNote says that the store does not answer.
type storeNote struct {
	Error string    // empty if it does
	At    time.Time // time of the data on the page; zero if there is none
}

func noteOf(s *snapshot) storeNote {
	if s.Err == nil {
		return storeNote{}
	}
	return storeNote{storeError(s.Err), s.At}
}

// storeError explains to people why the store does not answer.
func storeError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "It did not answer in time; see the server's log."
	}
	return sentence(cmp.Or(service.ProblemOf(err, 0, false).Detail, "see the server's log")) + "."
}

// stateOfNode describes a node ID's state to people.
func stateOfNode(n grant.NodeInfo, at time.Time) state {
	switch {
	case n.Owner == "":
		return state{"fenced", "idle", "An operator has fenced it: its owner cannot continue."}
	case !n.Held:
		return state{"given back", "idle", "Its owner has given it back; the next owner begins where it ended."}
	case !n.Until.After(at):
		return state{"lapsed", "idle", "It expired: its owner was idle or has crashed. It is free."}
	case n.Closing:
		return state{"giving back", "busy", "Its owner has to give it back."}
	}
	return state{"held", "good", "Its owner makes IDs with it, and renews the window while it does."}
}

// addNodes adds the node IDs that were ever used: those in use first.
func (p *sequencerPage) addNodes(q sequencerInfo, s *snapshot, at time.Time) {
	here := p.Here != nil && p.Here.Attached
	for _, n := range q.Nodes {
		p.Rows = append(p.Rows, nodeRow{Node: n.Node, Server: s.holder(q.Name, n),
			State: stateOfNode(n, at), Until: n.Until, Here: here && n.Node == p.Here.Node && n.Held})
	}
	slices.SortStableFunc(p.Rows, func(a, b nodeRow) int {
		return cmp.Or(compareStates(a.State, b.State), b.Until.Compare(a.Until))
	})
	if len(p.Rows) > maxNodeRows {
		p.More, p.Rows = len(p.Rows)-maxNodeRows, p.Rows[:maxNodeRows]
	}
}

// actionsOf has the possible actions for a sequencer in a state.
var actionsOf = map[grant.State][]string{
	grant.Attached:   {"detach", "destroy"},
	grant.Detaching:  {"detach", "attach", "destroy"},
	grant.Detached:   {"attach", "destroy"},
	grant.Destroying: {"destroy"},
	grant.Destroyed:  {"recreate"},
}
