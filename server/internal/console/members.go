package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/operate/members"
)

// A membersPage shows the servers of the store.
type membersPage struct {
	Now      time.Time
	HasStore bool
	Store    storeNote
	Rows     []memberRow
}

// A memberRow is a server.
type memberRow struct {
	memberInfo
	Self  bool
	State state
	Rate  float64
	Made  uint64
	Held  []members.Held // held now, if the visitor may see them
}

func (k *Console) members(v *visit) {
	if !v.who.MayRead("") {
		v.forbidden("You may not see the servers.")
		return
	}
	v.show(http.StatusOK, "members", page{Title: "Servers", Section: "members", Live: true, Body: k.membersNow(v)})
}

func (k *Console) membersNow(v *visit) membersPage {
	s := k.snapshots.recent(v.r.Context())
	p := membersPage{Now: v.now, HasStore: k.admin != nil, Store: noteOf(s)}
	for _, m := range s.Members {
		r := memberFor(v.who, m)
		r.Self = m.ID == k.config.Self()
		r.State = upState
		if m.Late {
			r.State = lateState
		}
		r.Held = slices.DeleteFunc(slices.Clone(r.Holds), func(h members.Held) bool { return !h.Until.After(v.now) })
		p.Rows = append(p.Rows, r)
	}
	// Members are sorted by host and address; those in trouble come first.
	slices.SortStableFunc(p.Rows, func(a, b memberRow) int { return compareStates(a.State, b.State) })
	return p
}

// memberFor returns a server with the figures that a visitor may see.
func memberFor(who visitor, m memberInfo) memberRow {
	r := memberRow{memberInfo: m, Rate: m.Member.Rate, Made: m.IDs}
	if who.may(auth.SeeAll, "") {
		return r
	}
	r.Member = m.For(who.MayRead)
	r.Rate, r.Made = 0, r.IDs
	for _, h := range r.Holds {
		r.Rate += m.Rates[h.Sequencer]
	}
	return r
}

// The states of servers.
var (
	upState   = state{"up", "good", "It writes its record to the store regularly."}
	lateState = state{"late", "busy", "Its next record in the store is overdue. When the last one expires, it is no " +
		"longer listed, and its node IDs are free when their windows end."}
)
