package forwarding

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/service"
)

// TestElsewhere: another server can be asked where one says that it has a
// number and where it is, or where calls were answered a moment ago.
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

// TestCrashedWithItsClockAhead: a server that has crashed while its clock was a
// year ahead is not asked for a year.
func TestCrashedWithItsClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memstore.Store)
		f := NewForwarder(ForwarderConfig{})
		defer f.Close()
		b := New(service.NewFleet(store, nil), f, members.New(store, members.Options{}), nil)
		crashed := members.New(crashing{store, time.Now()}, members.Options{Now: func() time.Time { return time.Now().AddDate(1, 0, 0) }})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			crashed.Run(ctx, func() members.Member {
				return members.Member{Address: "h:1", Holds: []members.Held{{Sequencer: "orders"}}}
			})
		}()
		synctest.Wait()
		for second := range 60 {
			got := b.CanHelp(t.Context(), "orders")
			if listed := second <= 30; got != listed && (listed || second > 30+3) { // the list is read every 3 s here
				t.Fatalf("after %d s: %t", second, got)
			}
			time.Sleep(time.Second)
		}
		stop()
		<-ended
	})
}

// crashing is a store for a server that crashes: only what it writes at once is
// written.
type crashing struct {
	*memstore.Store
	began time.Time
}

func (c crashing) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if time.Since(c.began) > 0 {
		return false, grant.ErrNotSent
	}
	return c.Store.CAS(ctx, key, old, next)
}
