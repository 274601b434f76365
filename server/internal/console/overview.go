package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/service"
)

// An overviewPage shows all sequencers, and the main figures of the fleet.
type overviewPage struct {
	Store    storeNote
	HasStore bool
	Total    bool // the visitor sees the Rate
	Rate     float64
	Made     uint64
	MadeMore bool // the visitor sees only a part of Made
	Members  int
	Partial  uint64 // servers whose IDs are missing in the rows
	Held     uint64 // of the sequencers whose node IDs were read
	HeldMore bool   // they are not all
	Unread   uint64 // the number of the others, those with a damaged record aside
	Troubles []trouble
	Hidden   int // number of further ones
	Rows     []overviewRow
	All      int // number of sequencers, of which Rows may have a part
	Query    string
	Maker    bool
	Admin    bool
	Layout   firn.Layout // of new sequencers
}

// An overviewRow is a sequencer in the list.
type overviewRow struct {
	Name      string
	State     state
	Layout    string
	Made      uint64
	Nodes     service.NodeCounts
	NodesRead bool
	Last      time.Time
	Left      string
}

// A state is a word with its color and meaning.
type state struct{ Word, Tone, Means string }

// states describes the states of sequencers to people.
var states = map[grant.State]state{
	grant.Attached:   {"attached", "good", "Servers can acquire its node IDs and make IDs."},
	grant.Detaching:  {"detaching", "busy", "Servers are giving their node IDs back."},
	grant.Detached:   {"detached", "idle", "No server holds its node IDs or makes IDs until it is attached."},
	grant.Destroying: {"destroying", "busy", "Servers are giving their node IDs back permanently."},
	grant.Destroyed: {"destroyed", "idle", "It makes no more IDs. If it is created again with the same layout, it " +
		"continues without repeating any."},
	grant.Purged: {"purged", "idle", "It can be created again with any layout."},
}

// stateOf describes the state of a sequencer to people.
func stateOf(i grant.Info) state {
	if i.MovedTo != "" {
		return state{"moved", "idle", "Another store has it now, " + i.MovedTo + ": change it there."}
	}
	return states[i.State]
}

// staticState is the state of a sequencer without a store.
var staticState = state{"static", "good", "This server has a static node ID and knows no other servers."}

// maxRows is how many sequencers the list shows, and maxTroubles how many
// troubles.
const (
	maxRows     = 200
	maxTroubles = 50
)

// overview shows the first page.
func (k *Console) overview(v *visit) {
	if !v.who.MayRead("") {
		http.Redirect(v.w, v.r, "/inspect", http.StatusSeeOther)
		return
	}
	v.show(http.StatusOK, page{Title: "Overview", Section: "overview", Live: true}, k.overviewNow(v).view())
}

func (k *Console) overviewNow(v *visit) overviewPage {
	p := overviewPage{HasStore: k.admin != nil, Maker: v.who.mayAny(auth.Take), Layout: k.config.Layout,
		Admin: v.who.mayAny(auth.Change) && k.admin != nil, Query: strings.TrimSpace(v.r.URL.Query().Get("q"))}
	s := k.snapshots.recent(v.r.Context())
	p.Store, p.Total = noteOf(s), p.HasStore && v.who.may(auth.SeeAll, "")
	rows := make(map[string]*overviewRow)
	for _, q := range s.Sequencers {
		if v.who.MayRead(q.Name) {
			rows[q.Name] = rowOf(q, v.now)
		}
	}
	figures := make(map[string]*metrics.Sequencer)
	for _, f := range k.config.Figures() {
		if !v.who.MayRead(f.Name) {
			continue
		}
		figures[f.Name] = &f
		if k.admin == nil {
			rows[f.Name] = &overviewRow{Name: f.Name, State: staticState}
		}
		p.Made += f.IDs
		if row := rows[f.Name]; row != nil {
			row.Made = f.IDs
		}
	}
	p.addMembers(s, v.who, k.config.Self(), rows)
	for _, q := range s.Sequencers {
		if row := rows[q.Name]; row != nil {
			p.HeldMore = p.HeldMore || !q.NodesRead
			if !q.NodesRead && q.Damage == "" {
				p.Unread++
			}
			wrong := troublesOf(q, figures[q.Name], v.now)
			if len(wrong) > 0 {
				row.State = wrong[0].State
			}
			p.Troubles = append(p.Troubles, wrong...)
		}
	}
	slices.SortStableFunc(p.Troubles, func(a, b trouble) int { return compareStates(a.State, b.State) })
	for name, row := range rows {
		p.All++
		p.Held += row.Nodes.Held
		if strings.Contains(strings.ToLower(name+" "+row.State.Word+" "+row.Layout), strings.ToLower(p.Query)) {
			p.Rows = append(p.Rows, *row)
		}
	}
	p.Hidden = max(0, len(p.Troubles)-maxTroubles)
	p.Troubles = p.Troubles[:len(p.Troubles)-p.Hidden]
	slices.SortFunc(p.Rows, func(a, b overviewRow) int { // the worst first
		return cmp.Or(compareStates(a.State, b.State), cmp.Compare(a.Name, b.Name))
	})
	p.Rows = p.Rows[:min(len(p.Rows), maxRows)]
	return p
}

// addMembers adds the rates of all servers to the totals, and what servers
// other than self have made to the totals and the rows. A server that does not
// list all its node IDs adds nothing to the rows: which ones it lists changes.
func (p *overviewPage) addMembers(s *snapshot, who visitor, self string, rows map[string]*overviewRow) {
	p.Members = len(s.Members)
	for _, m := range s.Members {
		if m.Late {
			p.Troubles = append(p.Troubles, trouble{m.Name, "/members", lateState, "last heard at " + clock(m.Heard)})
		}
		m = memberFor(who, m)
		p.Rate += m.Rate
		if m.ID == self {
			continue
		}
		p.Made += m.IDs
		if m.Partial {
			p.Partial++
			p.MadeMore = p.MadeMore || !who.may(auth.SeeAll, "")
			continue
		}
		for _, h := range m.Holds {
			if row := rows[h.Sequencer]; row != nil {
				row.Made += h.IDs
			}
		}
	}
}

// rowOf returns a row of the list, without the IDs made.
func rowOf(q sequencerInfo, at time.Time) *overviewRow {
	row := &overviewRow{Name: q.Name, NodesRead: q.NodesRead}
	if q.Damage != "" {
		return row
	}
	l := q.Info.Config.Layout
	row.State, row.Layout = stateOf(q.Info), l.String()
	row.Last, row.Left = l.Last(), timeLeft(l.End(), at)
	row.Nodes, _ = nodeCounts(q, at)
	return row
}

// counted says how many sequencers the list has, of how many.
func (p overviewPage) counted() string {
	if len(p.Rows) == p.All {
		return strconv.Itoa(p.All)
	}
	return fmt.Sprintf("%d of %d", len(p.Rows), p.All)
}

// facts returns the main figures of the fleet.
func (p overviewPage) facts() (all []fact) {
	if p.Total {
		all = append(all, fact{"IDs per second", count(p.Rate)})
	}
	all = append(all, fact{"IDs made", orMore(p.Made, p.MadeMore)})
	if p.HasStore {
		all = append(all, fact{"Servers", strconv.Itoa(p.Members)}, fact{"Node IDs held", orMore(p.Held, p.HeldMore)})
	}
	return all
}

// table returns the list of sequencers.
func (p overviewPage) table() table {
	t := table{Class: "stack seqs", Columns: []column{
		{"Name", ""}, {"State", ""}, {"IDs made", "n"}, {"Node IDs", "n"}, {"Last ID", "n"},
	}}
	for _, r := range p.Rows {
		cells := []cell{{Text: r.Name, Link: addressOf(r.Name), Small: r.Layout}, {State: r.State}, {}, {}, {}}
		if r.Made > 0 {
			cells[2].Text = number(r.Made)
		}
		if r.NodesRead {
			cells[3] = cell{Text: number(r.Nodes.Held) + " held", Small: number(r.Nodes.Free) + " left"}
		}
		if r.Left != "" {
			cells[4] = cell{Text: day(r.Last), Small: r.Left + " left"}
		}
		t.Rows = append(t.Rows, row{Key: r.Name, Cells: cells})
	}
	return t
}
