package members

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/nettest"
)

func list(t *testing.T, s grant.Store) []Member {
	t.Helper()
	all, err := List(t.Context(), s, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// host describes a member of which nothing else is known.
func host(name string) func() Member { return func() Member { return Member{Host: name} } }

// TestMembers: many that start at once are all listed, with their rates; who ends is
// gone at once, who crashes a little later, and their records are used again.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(memstore.Store)
		const size = 50
		var running sync.WaitGroup
		start := func(ctx context.Context, i int) {
			ids := uint64(0)
			a := New(s, Options{})
			running.Go(func() {
				a.Run(ctx, func() Member {
					ids += 1000
					return Member{Host: fmt.Sprintf("h%02d", i), IDs: ids, Holds: make([]Held, 100)}
				})
			})
		}
		ctx, stop := context.WithCancel(t.Context())
		for i := range size {
			start(ctx, i)
		}
		time.Sleep(11 * time.Second)
		all := list(t, s)
		if len(all) != size {
			t.Fatalf("%d members, want %d", len(all), size)
		}
		for i, m := range all {
			if m.Host != fmt.Sprintf("h%02d", i) || m.Rate != 100 || len(m.Holds) != MaxHeld {
				t.Errorf("member %d is %+v", i, m)
			}
		}
		stop()
		running.Wait()
		if left := list(t, s); len(left) != 0 {
			t.Errorf("%d members are left", len(left))
		}
		ctx, stop = context.WithCancel(t.Context())
		for i := range size {
			start(ctx, i)
		}
		time.Sleep(time.Second)
		n := 0
		_ = s.List(ctx, "", func(string, []byte) bool { n++; return true })
		if n > size+8 {
			t.Errorf("%d records for %d members", n, size)
		}
		stop()
		running.Wait()
	})
}

// TestListedAgain: the log says when the server is not listed, and when it is again. While it
// is not, it tries every two seconds.
func TestListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &nettest.Store{Store: new(memstore.Store), Err: errors.New("cut")}
		a := New(s, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { a.Run(ctx, host("h")) })
		for _, want := range []string{
			"",
			`level=WARN msg="this server is not listed: the store does not take it" error=cut`,
			`level=INFO msg="this server is listed again" after=36s`,
			"",
		} {
			time.Sleep(5 * time.Second)
			s.Cut.Store(strings.Contains(want, "WARN"))
			time.Sleep(35 * time.Second)
			synctest.Wait()
			if got := log.String(); strings.Count(got, "\n") != min(1, len(want)) || !strings.Contains(got, want) {
				t.Errorf("the log says %q, want one line with %q", got, want)
			}
			log.Reset()
		}
		stop()
		running.Wait()
	})
}

// TestCrash: a member that says nothing more is gone after three times its interval; one
// whose record was taken meanwhile takes another.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(memstore.Store)
		stalled := New(s, Options{})
		if err := stalled.write(t.Context(), Member{Host: "stalled"}, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Second)
		if n := len(list(t, s)); n != 1 {
			t.Errorf("%d members, want one", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(list(t, s)); n != 0 {
			t.Errorf("%d members, want none", n)
		}
		for i := range 12 { // until one has taken its record
			other := New(s, Options{})
			if err := other.write(t.Context(), Member{Host: fmt.Sprint(i)}, 30*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if err := stalled.write(t.Context(), Member{Host: "stalled"}, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if n := len(list(t, s)); n != 13 {
			t.Errorf("%d members, want 13", n)
		}
	})
}

// TestDamage: what is no member is not listed, and its record is used again.
func TestDamage(t *testing.T) {
	s := new(memstore.Store)
	for _, k := range []string{key(0), prefix + "x"} {
		if ok, err := s.CAS(t.Context(), k, nil, []byte("nonsense")); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	a := New(s, Options{})
	if err := a.write(t.Context(), Member{Host: "a"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if all := list(t, s); len(all) != 1 || all[0].ID != a.ID() {
		t.Errorf("%+v", all)
	}
}
