package forwarding

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/service"
)

// TestElsewhere: another server can be asked where one says that it has a number and where
// it is, or where calls were answered a moment ago.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memstore.Store)
		self := members.New(store, members.Options{})
		f := NewForwarder(ForwarderConfig{})
		defer f.Close()
		b := New(service.NewFleet(store, nil), f, self, nil)
		ask := b.CanHelp
		want := func(what string, want bool) {
			t.Helper()
			if got := ask(t.Context(), "orders"); got != want {
				t.Errorf("%s: %t, want %t", what, got, want)
			}
		}
		want("nobody", false)
		b.helped.Store(time.Now().UnixNano())
		want("a call was answered", true)
		time.Sleep(helpedLately - time.Second)
		want("a while ago", true)
		_ = b.gaveUp(errors.New("no node ID"), []result{none})
		want("and the next failed", false)
		b.helped.Store(time.Now().UnixNano())
		time.Sleep(helpedLately)
		want("long ago", false)

		for _, row := range []struct {
			m    members.Member
			self bool
			want bool
		}{
			{members.Member{Address: "h:1", Holds: []members.Held{{Sequencer: "users"}}}, false, false},
			{members.Member{Address: "h:1", Holds: []members.Held{{Sequencer: "users"}, {Sequencer: "orders"}}}, false, true},
			{members.Member{Holds: []members.Held{{Sequencer: "orders"}}}, false, false},
			{members.Member{Address: "h:1", Holds: []members.Held{{Sequencer: "orders"}}}, true, false},
			{members.Member{Address: "h:1", Holds: make([]members.Held, members.MaxHeld)}, false, true},
		} {
			time.Sleep(fresh + time.Second) // the list is read again
			a := members.New(store, members.Options{})
			if row.self {
				a = self
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { a.Run(ctx, func() members.Member { return row.m }); close(done) }()
			synctest.Wait()
			if got := ask(t.Context(), "orders"); got != row.want {
				t.Errorf("%+v: %t, want %t", row, got, row.want)
			}
			b.peers.shun(a.ID(), "orders", unreachable)
			if ask(t.Context(), "orders") {
				t.Errorf("%+v: it can be asked, and did not answer just now", row)
			}
			stop()
			<-done
		}
	})
}
