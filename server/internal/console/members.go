package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/fleet/members"
)

// A membersPage shows the servers of the store.
type membersPage struct {
	Now        time.Time
	Store      bool
	StoreFault string
	StoreAt    time.Time
	Rows       []memberRow
}

// A memberRow is a server.
type memberRow struct {
	memberInfo
	Self  bool
	State state
	Rate  float64
	Made  uint64
	Held  []members.Held // held now, if the visitor may see them
	Some  int            // number of further ones
	Gone  bool
}

// maxHeldShown is how many node IDs a row lists.
const maxHeldShown = 6

func (k *Console) members(v *visit) {
	if !v.who.MayRead("") {
		v.forbidden("It does not allow seeing the servers.")
		return
	}
	v.show(http.StatusOK, "members", page{Title: "Members", Section: "members", Live: "/events?page=members", Body: k.membersNow(v)})
}

func (k *Console) membersNow(v *visit) membersPage {
	p := membersPage{Now: v.now, Store: k.admin != nil}
	s := k.fleet.recent(v.r.Context())
	if s.Err != nil {
		p.StoreFault, p.StoreAt = storeFault(s.Err), s.At
	}
	self := k.c.Self()
	for _, m := range s.Members {
		r := k.memberFor(v.who, m)
		r.Self = m.ID == self
		r.State = presenceOf(m.State)
		r.Gone = m.State == stopped || m.State == lost
		if r.Self {
			_, rates := k.history.rates(v.who.MayRead)
			r.Rate = now(rates)
		}
		for _, h := range m.Holds {
			if v.who.MayRead(h.Sequencer) && h.Until.After(v.now) {
				r.Held = append(r.Held, h)
			}
		}
		if len(r.Held) > maxHeldShown {
			r.Some, r.Held = len(r.Held)-maxHeldShown, r.Held[:maxHeldShown]
		}
		p.Rows = append(p.Rows, r)
	}
	slices.SortStableFunc(p.Rows, func(a, b memberRow) int {
		if a.Self != b.Self || a.Gone != b.Gone {
			if a.Self || !a.Gone && !b.Self {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Host+a.Address, b.Host+b.Address)
	})
	return p
}

// memberFor returns a server with the figures that a visitor may see.
func (k *Console) memberFor(who visitor, m memberInfo) memberRow {
	r := memberRow{memberInfo: m, Rate: m.Member.Rate, Made: m.IDs}
	if who.SeesAll() {
		return r
	}
	r.Member = m.For(who.MayRead)
	r.Rate, r.Made = 0, r.IDs
	for _, h := range r.Holds {
		r.Rate += m.Rates[h.Sequencer]
	}
	return r
}

// presenceOf describes a server's presence to people.
func presenceOf(p presence) state {
	switch p {
	case late:
		return state{"late", "busy", "Its next record in the store is overdue."}
	case stopped:
		return state{"stopped", "idle", "It announced that it was stopping."}
	case lost:
		return state{"lost", "bad", "It stopped writing its record to the store without announcing that it was stopping."}
	}
	return state{"up", "good", "It writes its record to the store regularly."}
}
