package members

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

func list(t *testing.T, s grant.Store) []Server {
	t.Helper()
	return must.Get(List(t.Context(), s, time.Now()))(t)
}

// host describes a member of which nothing else is known.
func host(name string) func() Server { return func() Server { return Server{Host: name} } }

// TestMembers: many that start at once are all listed, with their rates; who
// ends is gone at once, who crashes a little later, and their records are used
// again.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(memstore.Store)
		const size = 50
		var running sync.WaitGroup
		start := func(ctx context.Context, i int) {
			ids := uint64(0)
			a := New(s, Options{})
			running.Go(func() {
				a.Run(ctx, func() Server {
					ids += 1000
					return Server{Host: fmt.Sprintf("h%02d", i), IDs: ids, Holds: make([]Held, 100)}
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

// TestListedAgain: the log says when the server is not listed, with the store's
// own reason, and when it is again. That holds for a store that is cut off, and
// for one that still reads, so that the server finds that nothing was written.
func TestListedAgain(t *testing.T) {
	for _, fails := range []func(*faultstore.Store) *atomic.Bool{
		func(s *faultstore.Store) *atomic.Bool { return &s.Cut },
		func(s *faultstore.Store) *atomic.Bool { return &s.Reads },
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &faultstore.Store{Store: new(memstore.Store), Err: errors.New("no space")}
			a := New(s, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { a.Run(ctx, host("h")) })
			for _, want := range []string{
				"",
				`level=WARN msg="server not listed: writing its record to the store failed" error="no space"`,
				`level=INFO msg="server listed in the store again" after=40s`,
				"",
			} {
				time.Sleep(5 * time.Second)
				fails(s).Store(strings.Contains(want, "WARN"))
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
}

// TestCrash: a member that says nothing more is gone after three times its
// interval; one whose record was taken meanwhile takes another.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(memstore.Store)
		stalled := New(s, Options{})
		must.Do(t, stalled.write(t.Context(), Server{Host: "stalled"}, 30*time.Second))
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
			must.Do(t, other.write(t.Context(), Server{Host: fmt.Sprint(i)}, 30*time.Second))
		}
		must.Do(t, stalled.write(t.Context(), Server{Host: "stalled"}, 30*time.Second))
		if n := len(list(t, s)); n != 13 {
			t.Errorf("%d members, want 13", n)
		}
	})
}

// TestClockAheadTakesNoRecord: a server whose clock is ahead takes no record of
// one that lives, and those of servers that are gone.
func TestClockAheadTakesNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faultstore.Timed{Store: new(memstore.Store), Now: time.Now}
		ahead := func() time.Time { return time.Now().Add(time.Minute) }
		var all []*Announcer
		for range 8 {
			all = append(all, New(s, Options{}))
			must.Do(t, all[len(all)-1].write(t.Context(), Server{}, 30*time.Second))
		}
		must.Do(t, New(s, Options{Now: ahead}).write(t.Context(), Server{}, 30*time.Second))
		if got := list(t, s); len(got) != 9 {
			t.Errorf("%d members, want 9: one has lost its record", len(got))
		}
		time.Sleep(31 * time.Second) // all are gone, the last one by its own clock too
		time.Sleep(time.Minute)
		must.Do(t, New(s, Options{Now: ahead}).write(t.Context(), Server{}, 30*time.Second))
		records := 0
		_ = s.List(t.Context(), prefix, func(string, []byte) bool { records++; return true })
		if records != 9 {
			t.Errorf("%d records, want 9: none was used again", records)
		}
	})
}

// TestDamagedRecord: what is no member is not listed, and its record is used
// again.
func TestDamagedRecord(t *testing.T) {
	s := new(memstore.Store)
	for _, k := range []string{key(0), prefix + "x"} {
		faultstore.Put(t, s, k, "nonsense")
	}
	a := New(s, Options{})
	must.Do(t, a.write(t.Context(), Server{Host: "a"}, time.Minute))
	if all := list(t, s); len(all) != 1 || all[0].ID != a.ID() {
		t.Errorf("%+v", all)
	}
}

// TestFor: who sees some sequencers learns nothing of how much is made of the
// others.
func TestFor(t *testing.T) {
	m := Server{ID: "x", IDs: 100, Rate: 7, Forwarded: 3, Holds: []Held{{Sequencer: "a-1", IDs: 2}, {Sequencer: "b-1", IDs: 90}, {Sequencer: "a-2", IDs: 3}}}
	before := slices.Clone(m.Holds)
	got := m.For(func(name string) bool { return strings.HasPrefix(name, "a-") })
	if got.ID != "x" || got.IDs != 5 || got.Rate != 0 || got.Forwarded != 0 || len(got.Holds) != 2 || got.Holds[1].Sequencer != "a-2" {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(m.Holds, before) || m.IDs != 100 {
		t.Errorf("the member itself was changed: %+v", m)
	}
}

// TestManyNodeIDs: a record says how many node IDs its server holds, and lists
// the first by name, the same at each write. That of an older server, which does
// not say how many, may leave some out.
func TestManyNodeIDs(t *testing.T) {
	s, now := new(memstore.Store), time.Now()
	for _, row := range []struct {
		size, listed int
		long         string // the end of the names
	}{{0, 0, ""}, {20, 20, ""}, {21, 20, ""}, {25, 15, strings.Repeat("x", 120)}} {
		a := New(s, Options{Now: func() time.Time { return now }})
		m := Server{Host: "many"}
		for i := range row.size {
			m.Holds = append(m.Holds, Held{Sequencer: fmt.Sprintf("q%02d", i) + row.long, Until: now.Add(time.Minute)})
		}
		want := slices.Clone(m.Holds[:row.listed])
		rand.Shuffle(row.size, func(i, j int) { m.Holds[i], m.Holds[j] = m.Holds[j], m.Holds[i] })
		must.Do(t, a.write(t.Context(), m, time.Minute))
		got := list(t, s)[0]
		same := slices.EqualFunc(got.Holds, want, func(a, b Held) bool { return a.Sequencer == b.Sequencer })
		n, atLeast := got.HeldAt(now)
		if got.NodeIDs != row.size || n != row.size || atLeast || got.Partial != (row.listed < row.size) || !same {
			t.Errorf("of %d: %+v, %d, %t", row.size, got, n, atLeast)
		}
		if n, _ := got.HeldAt(now.Add(time.Hour)); n != row.size-row.listed {
			t.Errorf("of %d, after the windows: %d", row.size, n)
		}
		some := got.For(func(name string) bool { return name < "q10" })
		if n, atLeast := some.HeldAt(now); n != min(10, row.size) || atLeast != got.Partial {
			t.Errorf("of %d, to who sees ten: %d, %t", row.size, n, atLeast)
		}
		must.Do(t, a.write(t.Context(), m, 0))
	}
	for _, row := range []struct {
		size    int
		atLeast bool
	}{{19, false}, {20, true}} {
		older, _ := json.Marshal(map[string]any{"until": now.Add(time.Hour), "holds": make([]Held, row.size)})
		s := new(memstore.Store)
		faultstore.Put(t, s, key(0), string(older))
		got := list(t, s)[0]
		if n, atLeast := got.HeldAt(time.Time{}.Add(-1)); n != row.size || atLeast != row.atLeast {
			t.Errorf("an older server with %d: %d, %t", row.size, n, atLeast)
		}
	}
}

// A rarely is a store whose requests cost money, once it is open.
type rarely struct {
	grant.Store
	open atomic.Bool
}

func (r *rarely) Pace() (p grant.Pace) {
	if r.open.Load() {
		p.PresenceEvery = 200 * time.Second
	}
	return p
}

// TestPresenceOfStore checks that a store says how often members write.
func TestPresenceOfStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes atomic.Int64
		inner := &rarely{Store: new(memstore.Store)}
		s := grant.Observe(inner, func(ctx context.Context, request grant.Request, _ string) (context.Context, func(bool, error)) {
			if request == grant.RequestCAS {
				writes.Add(1)
			}
			return ctx, func(bool, error) {}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			New(s, Options{}).Run(ctx, host("a"))
		}()
		time.Sleep(61 * time.Second) // at 0, 10, … 60 s
		if n := writes.Load(); n != 7 {
			t.Errorf("%d writes in 61 s, want 7", n)
		}
		inner.open.Store(true)
		time.Sleep(10 * time.Second)
		writes.Store(0)
		time.Sleep(1000 * time.Second)
		if n := writes.Load(); n != 5 {
			t.Errorf("%d writes in 1000 s, want 5", n)
		}
		cancel()
		<-done
	})
}
