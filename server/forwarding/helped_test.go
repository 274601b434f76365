package forwarding

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/httpapi"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/rpcapi"
)

// TestElsewhere: another server can be asked where one says that it has a number and where
// it is, or where calls were answered a moment ago.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memstore.Store)
		self := ""
		f := rpcapi.NewForwarder(rpcapi.ForwarderConfig{})
		defer f.Close()
		b := New(httpapi.ClusterConfig{Store: store}, f, func() string { return self })
		ask := b.helped
		want := func(what string, want bool) {
			t.Helper()
			if got := ask(t.Context(), "orders"); got != want {
				t.Errorf("%s: %t, want %t", what, got, want)
			}
		}
		want("nobody", false)
		b.forwarded.Add(1)
		want("a call was answered", true)
		time.Sleep(forwardedLately - time.Second)
		want("a while ago", true)
		b.failed.Add(1)
		want("and the next failed", false)
		b.forwarded.Add(1)
		b.failed.Add(1)
		want("one of each", true)
		time.Sleep(forwardedLately)
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
			a := members.New(store, func() members.Member { return row.m }, members.Options{})
			if id := a.ID(); row.self {
				self = id
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { a.Run(ctx); close(done) }()
			synctest.Wait()
			if got := ask(t.Context(), "orders"); got != row.want {
				t.Errorf("%+v: %t, want %t", row, got, row.want)
			}
			stop()
			<-done
		}
	})
}
