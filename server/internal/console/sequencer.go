package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	for _, verb := range actionsOf(q.Info) {
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

// stateOfNode describes a node ID's state to people, in the words of firn node
// list.
func stateOfNode(n grant.NodeInfo, at time.Time) state {
	word := service.NodeState(n, at)
	switch {
	case n.Owner == "":
		return state{word, "idle", "An operator has fenced it: its owner cannot continue."}
	case word == "free":
		return state{word, "idle", "Its owner has given it back; the next owner begins where it ended."}
	case word == "over":
		return state{word, "idle", "Its window has ended: its owner was idle or has crashed. It is free."}
	case word == "closing":
		return state{word, "busy", "Its owner has to give it back."}
	}
	return state{word, "good", "Its owner makes IDs with it, and renews the window while it does."}
}

// damagedNode is the state of a node ID whose record is damaged.
var damagedNode = state{"damaged", "bad", "Its record cannot be read: it is not known who used it, and up to when."}

// addNodes adds the node IDs that were ever used: first those that are damaged,
// then those in use.
func (p *sequencerPage) addNodes(q sequencerInfo, s *snapshot, at time.Time) {
	here := p.Here != nil && p.Here.Attached
	for _, n := range q.Damaged {
		p.Rows = append(p.Rows, nodeRow{Node: n.Node, State: damagedNode})
	}
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

// table returns the list of node IDs.
func (p *sequencerPage) table() table {
	t := table{Class: "stack nodes", Columns: []column{{"Node", "n"}, {"State", ""}, {"Server", ""}, {"Until", ""}}}
	for _, r := range p.Rows {
		node := strconv.FormatUint(r.Node, 10)
		server, until := cell{Text: r.Server}, cell{}
		if r.Here {
			server.Small = "this server"
		}
		if !r.Until.IsZero() {
			until = cell{Text: momentOf(r.Until, p.Now), Small: ago(r.Until, p.Now)}
		}
		t.Rows = append(t.Rows, row{Key: "n" + node, Cells: []cell{{Text: node}, {State: r.State}, server, until}})
	}
	return t
}

// capacity returns what follows from the layout.
func (p *sequencerPage) capacity() []fact {
	all := []fact{
		{"IDs per second, each node", count(p.Layout.IDsPerSecond())},
		{"Last ID", day(p.Layout.Last())},
		{"Time left", timeLeft(p.Layout.End(), p.Now)},
	}
	if !p.Static {
		all = append(all, fact{"Node IDs held", number(p.Nodes.Held)}, fact{"Node IDs left", number(p.Nodes.Free)})
	}
	return all
}

// hereNow returns what this server does.
func hereNow(s *metrics.Sequencer) []fact {
	lead, node := "none", "none"
	if s.Lead >= 0 {
		lead = duration(s.Lead)
	}
	all := []fact{
		{"IDs made", number(s.IDs)}, {"Calls that waited", number(s.Waits)}, {"Total wait", duration(s.TotalWait)},
		{"Lead over the clock", lead},
	}
	if !s.Stored {
		return all
	}
	if s.Attached {
		node = strconv.FormatUint(s.Node, 10)
	}
	all = append(all, fact{"Node", node}, fact{"Windows renewed", number(s.Renewed)})
	if s.Lost > 0 {
		all = append(all, fact{"Node IDs lost", number(s.Lost)})
	}
	return all
}

// settings returns what is the same for all servers.
func settings(info grant.Info) []fact {
	c := info.Config
	all := []fact{{"Window", duration(c.Window)}}
	add := func(shown bool, name, value string) {
		if shown {
			all = append(all, fact{name, value})
		}
	}
	add(info.LongestWindow != c.Window, "Longest window ever", duration(info.LongestWindow))
	add(true, "Maximum ahead of the clock", duration(c.MaxAhead))
	if c.Nodes != nil {
		add(true, "Range of node IDs", c.Nodes.String())
	}
	add(c.Prefix != "", "Prefix", c.Prefix)
	add(true, "Created", utc(info.Created))
	add(true, "Incarnation", number(info.Incarnation))
	add(!info.Floor.IsZero(), "No IDs before", utc(info.Floor))
	add(info.MovedTo != "", "Moved to", info.MovedTo)
	last := info.LastChange
	add(last.What != "", "Last change", last.What+" by "+last.By+", "+utc(last.At))
	return all
}

// actionsOf returns the possible actions for a sequencer: none if another store
// has it.
func actionsOf(i grant.Info) []string {
	if i.MovedTo != "" {
		return nil
	}
	return actionsIn[i.State]
}

// actionsIn has the possible actions in a state.
var actionsIn = map[grant.State][]string{
	grant.Attached:   {"detach", "destroy"},
	grant.Detaching:  {"detach", "attach", "destroy"},
	grant.Detached:   {"attach", "destroy"},
	grant.Destroying: {"destroy"},
	grant.Destroyed:  {"recreate"},
}
