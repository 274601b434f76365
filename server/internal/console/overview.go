package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/operate/metrics"
)

// An overviewPage shows all sequencers, and the main figures of the fleet.
type overviewPage struct {
	Now      time.Time
	Store    storeNote
	HasStore bool
	Rate     float64 // of all servers
	Made     uint64
	Members  int
	Held     uint64
	Troubles []trouble
	Hidden   int // number of further ones
	Rows     []overviewRow
	All      int // number of sequencers, of which Rows may have a part
	Query    string
	Sort     string
	Columns  []sortLink
	Maker    bool
	Admin    bool
	Chart    chart
	Layout   firn.Layout // of new sequencers
	Anatomy  anatomy     // of that layout
}

// An overviewRow is a sequencer in the list.
type overviewRow struct {
	Name      string
	State     state
	Layout    string
	Spark     chart
	Rate      float64
	Made      uint64
	Held      uint64
	Free      uint64
	NodesRead bool
	Last      time.Time
	Left      string
}

// A sortLink sorts the list by a column.
type sortLink struct {
	Name, Link string
	Order      string // as in aria-sort; empty if the list is sorted by another column
	Right      bool
}

// A state is a word with its color and meaning.
type state struct{ Word, Tone, Means string }

// states describes the states of sequencers to people.
var states = map[grant.State]state{
	grant.Attached:   {"attached", "good", "Servers can acquire its node IDs and make IDs."},
	grant.Detaching:  {"detaching", "busy", "Servers are giving their node IDs back."},
	grant.Detached:   {"detached", "idle", "No server holds its node IDs or makes IDs until it is attached."},
	grant.Destroying: {"destroying", "busy", "Servers are giving their node IDs back permanently."},
	grant.Destroyed:  {"destroyed", "idle", "It makes no more IDs. If it is created again with the same layout, it continues without repeating any."},
	grant.Purged:     {"purged", "idle", "It can be created again with any layout."},
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
	p := k.overviewNow(v)
	v.show(http.StatusOK, "overview", page{Title: "Overview", Section: "overview", Live: true, Body: p})
}

func (k *Console) overviewNow(v *visit) overviewPage {
	query := v.r.URL.Query()
	p := overviewPage{Now: v.now, HasStore: k.admin != nil, Maker: v.who.mayAny(auth.Take),
		Admin: v.who.mayAny(auth.Change) && k.admin != nil, Query: strings.TrimSpace(query.Get("q")), Sort: query.Get("sort")}
	p.Layout, p.Anatomy = k.config.Layout, anatomyOf(k.config.Layout)
	s := k.snapshots.recent(v.r.Context())
	p.Store = noteOf(s)
	times, rates, now := k.history.rates(v.who.MayRead)
	p.Chart, p.Rate = newChart(times, rates), now
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
	p.addMembers(k, s, v.who, rows)
	for _, q := range s.Sequencers {
		if row := rows[q.Name]; row != nil {
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
		p.Held += row.Held
		if strings.Contains(strings.ToLower(name+" "+row.State.Word+" "+row.Layout), strings.ToLower(p.Query)) {
			_, rates, now := k.history.ratesOf(name)
			row.Spark, row.Rate = newSpark(rates), row.Rate+now
			p.Rows = append(p.Rows, *row)
		}
	}
	p.Hidden = max(0, len(p.Troubles)-maxTroubles)
	p.Troubles = p.Troubles[:len(p.Troubles)-p.Hidden]
	p.sort()
	p.Rows = p.Rows[:min(len(p.Rows), maxRows)]
	return p
}

// addMembers adds the other servers' figures to the rows and the totals.
func (p *overviewPage) addMembers(k *Console, s *snapshot, who visitor, rows map[string]*overviewRow) {
	p.Members = len(s.Members)
	for _, m := range s.Members {
		if m.Late {
			p.Troubles = append(p.Troubles, trouble{m.Name, "/members", lateState, "last heard at " + clock(m.Heard)})
		}
		if m.ID == k.config.Self() {
			continue
		}
		visible := k.memberFor(who, m)
		p.Rate += visible.Rate
		p.Made += visible.Made
		for _, h := range visible.Holds {
			if row := rows[h.Sequencer]; row != nil {
				row.Made += h.IDs
				row.Rate += m.Rates[h.Sequencer]
			}
		}
	}
}

// rowOf returns a row of the list, without rates and IDs made.
func rowOf(q sequencerInfo, at time.Time) *overviewRow {
	row := &overviewRow{Name: q.Name, NodesRead: q.NodesRead}
	if q.Damage != "" {
		return row
	}
	l := q.Info.Config.Layout
	row.State, row.Layout = states[q.Info.State], l.String()
	row.Last, row.Left = l.Last(), timeLeft(l.Last(), at)
	n, _ := nodeCounts(q, at)
	row.Held, row.Free = n.Held, n.Free
	return row
}

// An order compares rows by a column, which the address names by key.
type order struct {
	key, name string
	compare   func(a, b *overviewRow) int
	right     bool // numbers
	large     bool // a click sorts the largest first
}

var orders = []order{
	{"name", "Name", func(a, b *overviewRow) int { return cmp.Compare(a.Name, b.Name) }, false, false},
	{"state", "State", func(a, b *overviewRow) int { return compareStates(a.State, b.State) }, false, false},
	{"rate", "IDs per second", func(a, b *overviewRow) int { return cmp.Compare(a.Rate, b.Rate) }, true, true},
	{"made", "IDs made", func(a, b *overviewRow) int { return cmp.Compare(a.Made, b.Made) }, true, true},
	{"nodes", "Node IDs", func(a, b *overviewRow) int { return cmp.Compare(a.Free, b.Free) }, true, false},
	{"last", "Last ID", func(a, b *overviewRow) int { return a.Last.Compare(b.Last) }, true, false},
}

// sort sorts the rows by a column, in the reverse order after a minus sign, and
// links the columns.
func (p *overviewPage) sort() {
	key, reverse := strings.CutPrefix(p.Sort, "-")
	at := max(0, slices.IndexFunc(orders, func(o order) bool { return o.key == key }))
	for i, o := range orders {
		c := sortLink{Name: o.name, Right: o.right, Link: p.address(o.key)}
		if i == at && !reverse || i != at && o.large {
			c.Link = p.address("-" + o.key)
		}
		if i == at {
			c.Order = "ascending"
			if reverse {
				c.Order = "descending"
			}
		}
		p.Columns = append(p.Columns, c)
	}
	slices.SortFunc(p.Rows, func(a, b overviewRow) int {
		by := orders[at].compare(&a, &b)
		if reverse {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(a.Name, b.Name))
	})
}

// address returns the address of the page in an order.
func (p *overviewPage) address(sort string) string {
	q := url.Values{"sort": {sort}}
	if p.Query != "" {
		q.Set("q", p.Query)
	}
	return "/?" + q.Encode()
}
