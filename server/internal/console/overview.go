package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/fleet/metrics"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// An overviewPage shows all sequencers, and the main figures of the fleet.
type overviewPage struct {
	Now        time.Time
	StoreFault string
	StoreAt    time.Time // time of the figures if the store does not answer
	Store      bool
	Rate       float64 // of all servers
	Made       uint64
	Members    int
	Held       int
	Rows       []overviewRow
	More       int // number of sequencers not shown
	Maker      bool
	Admin      bool
	Chart      chart
	Layout     firn.Layout // of the first sequencer
	Example    ruler       // an ID of that layout
}

// An overviewRow is a sequencer in the list.
type overviewRow struct {
	Name   string
	Fault  string
	State  state
	Layout string
	Spark  spark
	Rate   float64
	Made   uint64
	Here   bool // a present server has made IDs
	Held   uint64
	Free   string
	Looked bool
	Last   time.Time
	Left   string
	Soon   bool // the last ID is close
}

// A made is how many IDs other servers have made of a sequencer.
type made struct {
	ids  uint64
	rate float64
}

// A state is a word with its color and meaning.
type state struct{ Word, Tone, Means string }

// stateOf describes a sequencer's state to people.
func stateOf(s grant.State) state {
	switch s {
	case grant.Attached:
		return state{"attached", "good", "Servers can acquire its node IDs and make IDs."}
	case grant.Detaching:
		return state{"detaching", "busy", "Servers are giving their node IDs back."}
	case grant.Detached:
		return state{"detached", "idle", "No server holds its node IDs or makes IDs until it is attached."}
	case grant.Destroying:
		return state{"destroying", "busy", "Servers are giving their node IDs back permanently."}
	case grant.Destroyed:
		return state{"destroyed", "idle", "It makes no more IDs. If it is created again with the same layout, it continues without repeating any."}
	case grant.Purged:
		return state{"purged", "idle", "It can be created again with any layout."}
	}
	return state{s.String(), "bad", ""}
}

// maxRows is how many sequencers the list shows.
const maxRows = 200

// soon is the time before the last ID of a layout from which the page warns.
const soon = 3 * 365 * 24 * time.Hour

// overview shows the first page.
func (k *Console) overview(v *visit) {
	if !v.who.MayRead("") {
		http.Redirect(v.w, v.r, "/inspect", http.StatusSeeOther)
		return
	}
	v.show(http.StatusOK, "overview", page{Title: "Overview", Section: "overview", Live: "/events?page=overview", Body: k.overviewNow(v)})
}

func (k *Console) overviewNow(v *visit) overviewPage {
	p := overviewPage{Now: v.now, Store: k.admin != nil, Maker: v.who.Maker(), Admin: v.who.Admin() && k.admin != nil}
	p.Layout, p.Example = k.c.Layout, newRuler(k.c.Layout.Bits(), cutsOf(k.c.Layout), nil)
	figures := make(map[string]metrics.Sequencer)
	others := make(map[string]made)
	for _, f := range k.c.Figures() {
		if v.who.MayRead(f.Name) {
			figures[f.Name] = f
			p.Made += f.IDs
		}
	}
	s := k.fleet.recent(v.r.Context())
	if s.Err != nil {
		p.StoreFault, p.StoreAt = storeFault(s.Err), s.At
	}
	times, rates := k.history.rates(v.who.MayRead)
	p.Chart = newChart(times, rates)
	p.Rate = now(rates)
	self := k.c.Self()
	for _, m := range s.Members {
		if m.State == stopped || m.State == lost {
			continue
		}
		p.Members++
		if m.ID != self {
			r := k.memberFor(v.who, m)
			p.Rate += r.Rate
			p.Made += r.Made
			for _, h := range m.Holds {
				o := others[h.Sequencer]
				o.ids += h.IDs
				o.rate += m.Rates[h.Sequencer]
				others[h.Sequencer] = o
			}
		}
	}
	if k.admin == nil {
		k.staticRows(&p, figures)
	}
	for _, q := range s.Sequencers {
		if !v.who.MayRead(q.Name) {
			continue
		}
		row := k.rowOf(q, figures, others[q.Name], v.now)
		p.Held += int(row.Held)
		if len(p.Rows) == maxRows {
			p.More++
			continue
		}
		p.Rows = append(p.Rows, row)
	}
	// Sequencers in use come first; the others stay sorted by name.
	slices.SortStableFunc(p.Rows, func(a, b overviewRow) int { return cmp.Compare(rank(a), rank(b)) })
	return p
}

func rank(r overviewRow) int {
	switch {
	case r.Fault != "":
		return 0
	case r.State.Word == "destroyed" || r.State.Word == "purged":
		return 2
	}
	return 1
}

// rowOf returns a row of the list.
func (k *Console) rowOf(q sequencerInfo, figures map[string]metrics.Sequencer, others made, at time.Time) overviewRow {
	row := overviewRow{Name: q.Name, Fault: q.Fault}
	if q.Fault != "" {
		return row
	}
	f, here := figures[q.Name]
	row.Here, row.Made = here || others.ids > 0, f.IDs+others.ids
	_, rates := k.history.ratesOf(q.Name)
	row.Spark, row.Rate = newSpark(rates), now(rates)+others.rate
	row.State = stateOf(q.Info.State)
	row.setLayout(q.Info.Config.Layout, at)
	row.Looked = q.Looked
	row.Held = heldNow(q.Nodes, at)
	all := q.Info.Config.Layout.MaxNode()
	row.Free = count(float64(all) + 1 - float64(row.Held))
	return row
}

func (r *overviewRow) setLayout(l firn.Layout, at time.Time) {
	r.Layout = l.String()
	r.Last, r.Left = l.Last(), left(l.Last(), at)
	r.Soon = -inspect.Age(l.Last(), at) < soon.Seconds()
}

// heldNow counts the node IDs that are held.
func heldNow(nodes []grant.NodeInfo, at time.Time) (n uint64) {
	for _, x := range nodes {
		if x.Held && x.Until.After(at) {
			n++
		}
	}
	return n
}

// staticRows adds the names of a server without a store: those that it has
// served.
func (k *Console) staticRows(p *overviewPage, figures map[string]metrics.Sequencer) {
	for _, f := range figures {
		_, rates := k.history.ratesOf(f.Name)
		p.Rows = append(p.Rows, overviewRow{Name: f.Name, State: state{"static", "good", "This server has a static node ID and knows no other servers."}, Here: true, Made: f.IDs, Spark: newSpark(rates), Rate: now(rates)})
	}
	slices.SortFunc(p.Rows, func(a, b overviewRow) int { return cmp.Compare(a.Name, b.Name) })
	if len(p.Rows) > maxRows {
		p.More, p.Rows = len(p.Rows)-maxRows, p.Rows[:maxRows]
	}
}
