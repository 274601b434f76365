package console

import (
	"cmp"
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
	Total    bool // the visitor sees the totals of servers
	Store    storeNote
	Rows     []memberRow
}

// A memberRow is a server.
type memberRow struct {
	memberInfo
	Self  bool
	State state
	Held  []members.Held // listed and held now, if the visitor may see them
	More  string         // how many further ones it holds; empty if none
}

func (k *Console) members(v *visit) {
	if !v.who.MayRead("") {
		v.forbidden("You may not see the servers.")
		return
	}
	v.show(http.StatusOK, page{Title: "Servers", Section: "members", Live: true}, k.membersNow(v).view())
}

func (k *Console) membersNow(v *visit) membersPage {
	s := k.snapshots.recent(v.r.Context())
	p := membersPage{Now: v.now, HasStore: k.admin != nil, Total: v.who.may(auth.SeeAll, ""), Store: noteOf(s)}
	for _, m := range s.Members {
		r := memberRow{memberInfo: memberFor(v.who, m), Self: m.ID == k.config.Self(), State: upState}
		if m.Late {
			r.State = lateState
		}
		r.Held = slices.DeleteFunc(slices.Clone(r.Holds), func(h members.Held) bool { return !h.Until.After(v.now) })
		switch n, atLeast := r.HeldAt(v.now); {
		case atLeast:
			r.More = "perhaps others"
		case n > len(r.Held):
			r.More = number(uint64(n-len(r.Held))) + " more"
		}
		p.Rows = append(p.Rows, r)
	}
	// Members are sorted by host and address; those in trouble come first.
	slices.SortStableFunc(p.Rows, func(a, b memberRow) int { return compareStates(a.State, b.State) })
	return p
}

// about returns where a server is, and its version.
func (r memberRow) about() string {
	where := cmp.Or(r.Address, "no address for other servers")
	if r.Address != "" && r.TLS {
		where += " with TLS"
	}
	return where + " · Firn " + r.Version
}

// facts returns what is known about a server; total says whether the visitor
// sees its totals.
func (r memberRow) facts(now time.Time, total bool) []fact {
	made := orMore(r.IDs, r.Partial && !total)
	all := []fact{{"Up for", timeLeft(now, r.Started)}, {"IDs made", made}, {"Last heard", clock(r.Heard)}}
	if total {
		all = append(all, fact{"IDs per second", count(r.Rate)}, fact{"Calls forwarded", number(r.Forwarded)})
	}
	return all
}

// until says until when the server holds a node ID, and ends that part of the
// sentence.
func (r memberRow) until(i int) string {
	end := ", "
	switch {
	case i < len(r.Held)-1:
	case r.More != "":
		end = ", and " + r.More + "."
	default:
		end = "."
	}
	return "until " + clock(r.Held[i].Until) + end
}

// memberFor returns a server with what a visitor may see of it.
func memberFor(who visitor, m memberInfo) memberInfo {
	if !who.may(auth.SeeAll, "") {
		m.Server = m.For(who.MayRead)
	}
	return m
}

// The states of servers.
var (
	upState   = state{"up", "good", "It writes its record to the store regularly."}
	lateState = state{"late", "busy", "Its next record in the store is overdue. When the last one expires, it is no " +
		"longer listed, and its node IDs are free when their windows end."}
)
