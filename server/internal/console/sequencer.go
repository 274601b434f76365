package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/fleet/metrics"
	"github.com/firnid/firn/server/internal/service"
)

// A sequencerPage shows everything that is known about one sequencer.
type sequencerPage struct {
	Name       string
	Now        time.Time
	StoreFault string
	StoreAt    time.Time
	Static     bool // this server has no store
	State      state
	Info       grant.Info
	Layout     firn.Layout
	Ruler      ruler
	Fields     []field
	Second     string // IDs per second of one node
	Left       string
	Soon       bool
	Held       uint64
	Free       string
	Nodes      string
	Window     time.Duration
	Rows       []nodeRow
	More       int
	Broken     int
	AxisFrom   time.Time
	AxisTo     time.Time
	Here       *metrics.Sequencer
	Rate       float64
	Chart      chart
	Job        *job
	Maker      bool
	Admin      bool
	Acts       []string
	TimeLink   string
}

// A nodeRow is a node ID in the timeline.
type nodeRow struct {
	Node  uint64
	Host  string
	State state
	Until time.Time
	X, W  int // position of its window, of 1000
	Here  bool
}

// A chart shows the rates of the last minutes, drawn large.
type chart struct {
	Spark         spark  // without JavaScript
	Times, Values string // as JSON
	Most          float64
}

func newChart(times []time.Time, rates []float64) chart {
	c := chart{Spark: newSpark(rates)}
	seconds := make([]float64, len(times))
	values := make([]float64, len(rates))
	for i, t := range times {
		seconds[i] = math.Round(float64(t.UnixMilli())) / 1000
	}
	for i, r := range rates {
		values[i] = math.Round(r*10) / 10
		c.Most = max(c.Most, r)
	}
	// Numbers can always be encoded.
	x, _ := json.Marshal(seconds)
	y, _ := json.Marshal(values)
	c.Times, c.Values = string(x), string(y)
	return c
}

const (
	maxNodeRows = 100
	axisWide    = 1000
)

// sequencer shows the page of one sequencer.
func (k *Console) sequencer(v *visit) {
	name := v.r.PathValue("name")
	if err := service.CheckName(name); err != nil {
		v.fail(http.StatusBadRequest, "Invalid sequencer name", detail(err)+".")
		return
	}
	if !v.who.MayRead(name) {
		v.forbidden("It does not allow seeing the sequencer " + name + ".")
		return
	}
	p, err := k.sequencerNow(v, name)
	if err != nil && p.StoreFault == "" {
		v.failed(err, false)
		return
	}
	status := http.StatusOK
	if err != nil {
		status = http.StatusServiceUnavailable
	}
	v.show(status, "sequencer", page{Title: name, Section: "overview", Live: "/events?page=sequencer&name=" + url.QueryEscape(name), Body: p})
}

type missingPage struct {
	Name  string
	Admin bool
}

// sequencerNow returns what is known about a sequencer. If the store does not
// answer it returns an error, and the page shows StoreFault.
func (k *Console) sequencerNow(v *visit, name string) (p sequencerPage, err error) {
	p = sequencerPage{Name: name, Now: v.now, Maker: v.who.MayMake(name), Admin: v.who.MayAdmin(name) && k.admin != nil, Static: k.admin == nil}
	for _, f := range k.c.Figures() {
		if f.Name == name {
			p.Here = &f
		}
	}
	times, rates := k.history.ratesOf(name)
	p.Chart, p.Rate = newChart(times, rates), now(rates)
	if p.Static {
		s := k.c.Backend.Opened(name)
		if p.Here == nil || s == nil {
			return p, errNoSequencer
		}
		p.State = state{"static", "good", "This server has a static node ID and knows no other servers."}
		p.setLayout(s.Layout, v.now)
		return p, nil
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), min(loadLimit, k.c.Limit))
	defer cancel()
	q, err := k.fleet.lookup(ctx, name)
	if err != nil {
		if !errors.Is(err, errNoSequencer) {
			p.StoreFault, p.StoreAt = storeFault(err), v.now
			p.State = state{"unknown", "bad", "The store is unavailable."}
		}
		return p, err
	}
	p.Info, p.State = q.Info, stateOf(q.Info.State)
	p.Window = q.Info.Config.Window
	p.setLayout(q.Info.Config.Layout, v.now)
	p.Held, p.Broken = heldNow(q.Nodes, v.now), q.Broken
	p.Free = count(float64(p.Layout.MaxNode()) + 1 - float64(p.Held))
	p.Job = k.jobs.of(name)
	p.timeline(k, q, v.now)
	p.Acts = actsOf(q.Info.State)
	return p, nil
}

func (p *sequencerPage) setLayout(l firn.Layout, at time.Time) {
	p.Layout = l
	p.Ruler, p.Fields = newRuler(l.Bits(), cutsOf(l), nil), explainLayout(l)
	p.Second, p.Left, p.Nodes = count(l.IDsPerSecond()), left(l.Last(), at), power(l.NodeBits())
	p.Soon = l.Last().Sub(at) < soon
	p.TimeLink = "/time?layout=" + url.QueryEscape(l.String())
}

// storeFault explains to people why the store does not answer.
func storeFault(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "It did not answer in time; see the server's log."
	}
	f := service.FaultOf(err, 0, false)
	if f.Detail == "" {
		return "See the server's log."
	}
	return detail(errors.New(f.Detail)) + "."
}

// timeline draws the windows of node IDs around now.
func (p *sequencerPage) timeline(k *Console, q sequencerInfo, at time.Time) {
	reach := p.Window + p.Window/2
	p.AxisFrom, p.AxisTo = at.Add(-reach), at.Add(reach)
	x := func(t time.Time) int {
		share := float64(t.Sub(p.AxisFrom)) / float64(2*reach)
		return int(math.Round(min(max(share, 0), 1) * axisWide))
	}
	here := p.Here != nil && p.Here.Attached
	for _, n := range q.Nodes {
		r := nodeRow{Node: n.Node, Host: n.Host, Until: n.Until, Here: here && n.Node == p.Here.Node && n.Held}
		switch {
		case n.Owner == "":
			r.State = state{"fenced", "idle", "An operator has fenced it: its owner cannot continue."}
		case !n.Held:
			r.State = state{"given back", "idle", "Its owner has given it back; the next owner begins where it ended."}
		case !n.Until.After(at):
			r.State = state{"lapsed", "busy", "It expired: its owner was idle or has crashed. It is free."}
		case n.Closing:
			r.State = state{"giving back", "busy", "Its owner has to give it back."}
		default:
			r.State = state{"held", "good", "Its owner makes IDs with it, and renews the window while it does."}
		}
		begin := n.Wall
		if since, ok := k.fleet.since(p.Name, n); ok {
			begin = since
		}
		r.X = x(begin)
		r.W = max(0, x(n.Until)-r.X)
		if n.Until.After(p.AxisFrom) {
			r.W = max(r.W, 8) // keep very short windows visible
			r.X = min(r.X, axisWide-r.W)
		}
		p.Rows = append(p.Rows, r)
	}
	slices.SortStableFunc(p.Rows, func(a, b nodeRow) int {
		if c := cmp.Compare(toneRank(a.State), toneRank(b.State)); c != 0 {
			return c
		}
		if a.State.Tone == "good" {
			return cmp.Compare(a.Node, b.Node)
		}
		return b.Until.Compare(a.Until)
	})
	if len(p.Rows) > maxNodeRows {
		p.More, p.Rows = len(p.Rows)-maxNodeRows, p.Rows[:maxNodeRows]
	}
}

func toneRank(s state) int {
	switch s.Word {
	case "held":
		return 0
	case "giving back":
		return 1
	case "lapsed":
		return 2
	}
	return 3
}

// actsOf returns the possible acts for a sequencer in a state.
func actsOf(s grant.State) []string {
	switch s {
	case grant.Attached:
		return []string{"detach", "destroy"}
	case grant.Detaching:
		return []string{"detach", "attach", "destroy"}
	case grant.Detached:
		return []string{"attach", "destroy"}
	case grant.Destroying:
		return []string{"destroy"}
	case grant.Destroyed:
		return []string{"recreate"}
	}
	return nil
}
