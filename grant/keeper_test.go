package grant_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

// A foreignCode is all code of others that a Keeper runs: holder, clock, log,
// callbacks and store. One of them does something that is not expected.
type foreignCode struct {
	*memstore.Store
	site   string      // which one
	does   func()      // what it does
	armed  atomic.Bool // from now on
	hangs  atomic.Bool // reads never end, whatever their context
	silent atomic.Bool // the store does not return its lineage
	writes atomic.Int64
	used   atomic.Pointer[time.Time]
	ahead  atomic.Int64 // lead of the clock
	begun  firn.Grant
	deaf   bool // Watch returns a closed channel
}

func (f *foreignCode) at(site string) {
	if site == f.site && f.armed.Load() {
		f.does()
	}
}

func (f *foreignCode) Get(ctx context.Context, key string) ([]byte, error) {
	f.at("Get")
	if f.hangs.Load() {
		select {}
	}
	return f.Store.Get(ctx, key)
}

func (f *foreignCode) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	f.at("GetMany")
	return f.Store.GetMany(ctx, keys)
}

func (f *foreignCode) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	f.at("CAS")
	f.writes.Add(1)
	return f.Store.CAS(ctx, key, old, next)
}

func (f *foreignCode) Lineage(context.Context) (string, int64, error) {
	f.at("Lineage")
	if f.silent.Load() {
		return "", 0, errFault
	}
	return "one", 1, nil
}

func (f *foreignCode) Watch(ctx context.Context, key string) <-chan struct{} {
	f.at("Watch")
	if f.deaf {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return f.Store.Watch(ctx, key)
}

func (f *foreignCode) Begin(g firn.Grant) error { f.begun = g; f.at("Begin"); return nil }
func (f *foreignCode) Extend(time.Time) error   { f.at("Extend"); return nil }
func (f *foreignCode) Stop()                    { f.at("Stop") }

func (f *foreignCode) Used() time.Time {
	f.at("Used")
	if used := f.used.Load(); used != nil {
		return *used
	}
	return time.Time{}
}

func (f *foreignCode) now() time.Time {
	f.at("Now")
	return time.Now().Add(time.Duration(f.ahead.Load()))
}

func (f *foreignCode) Enabled(context.Context, slog.Level) bool { return true }
func (f *foreignCode) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f *foreignCode) WithGroup(string) slog.Handler            { return f }

func (f *foreignCode) Handle(context.Context, slog.Record) error { f.at("Logger"); return nil }

// keeper makes a Keeper with these parts, and a sequencer with one node ID for
// it.
func (f *foreignCode) keeper(t *testing.T) *grant.Keeper {
	t.Helper()
	f.Store = new(memstore.Store)
	c := config("default,epoch=-86400000")
	c.Nodes = &grant.NodeRange{Lo: 7, Hi: 7}
	create(t, f.Store, "s", c, f.now())
	return grant.NewKeeper(f, "s", nil, f, &grant.MemberOptions{Now: f.now, Logger: slog.New(f)})
}

// holding makes one that holds its node ID.
func (f *foreignCode) holding(t *testing.T) *grant.Keeper {
	t.Helper()
	k := f.keeper(t)
	t.Cleanup(func() { _ = k.Close(context.Background()) })
	hold(t, k)
	return k
}

// givenBack returns the mark after a Keeper has given its node ID back.
func (f *foreignCode) givenBack(t *testing.T, k *grant.Keeper) time.Time {
	t.Helper()
	must.Do(t, errors.Join(k.Leave(t.Context()), k.Wait(t.Context(), phase(grant.Idle))))
	return nodes(t, f, "s")[7].Until
}

// TestKeeperMistakes: the behaviour of a Keeper between a machine, a store and
// a Holder, which no simulation of machines covers.
func TestKeeperMistakes(t *testing.T) {
	for law, check := range map[string]func(t *testing.T, f *foreignCode){
		"a release waits for the seal": func(t *testing.T, f *foreignCode) {
			f.site, f.does = "Stop", func() {
				time.Sleep(time.Second)
				used := time.Now()
				f.used.CompareAndSwap(nil, &used) // Close seals once more
			}
			k := f.holding(t)
			f.armed.Store(true)
			until := f.givenBack(t, k)
			time.Sleep(2 * time.Second)
			if until.Before(f.Used()) {
				t.Errorf("the node ID is given back up to %v, and was used up to %v", until, f.Used())
			}
		},
		"a store that may have gone back is not written to": func(t *testing.T, f *foreignCode) {
			k := f.holding(t)
			f.silent.Store(true)
			before := f.writes.Load()
			for range 20 {
				time.Sleep(time.Second)
				must.Do(t, k.Demand(t.Context()))
			}
			synctest.Wait()
			if n := f.writes.Load() - before; n > 0 {
				t.Errorf("%d writes while the store did not say where it was", n)
			}
			f.silent.Store(false)
		},
		// Unix time 0 is a valid time. A window that ends there ends, and one
		// that begins there has a beginning.
		"zero is a time": func(t *testing.T, f *foreignCode) {
			for _, begins := range []time.Duration{-time.Hour, -30 * time.Second, 0} {
				from := time.Unix(0, 0).Add(begins)
				f.ahead.Store(int64(time.Until(from)))
				k := f.holding(t)
				g, until := f.begun, from.Add(30*time.Second)
				if g.From.IsZero() || g.Until.IsZero() || !g.From.Equal(from) || !g.Until.Equal(until) {
					t.Fatalf("a window that begins at %v is %v", begins, g)
				}
				must.Do(t, k.Close(t.Context()))
			}
		},
		"the mark of a release is rounded up": func(t *testing.T, f *foreignCode) {
			k := f.holding(t)
			used := time.Now().Add(700 * time.Microsecond)
			f.used.Store(&used)
			if until := f.givenBack(t, k); until.Before(used) {
				t.Errorf("the node ID is given back up to %v, and was used up to %v", until, used)
			}
		},
	} {
		t.Run(law, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, new(foreignCode)) })
		})
	}
}

// foreignEnv is set in a process that TestKeeperPanics starts, to the code that
// panics there.
const foreignEnv = "FIRN_GRANT_PANICS"

// TestKeeperPanics: a panic in code of others, in a goroutine of the Keeper,
// ends the process with the panic's own message, even if a request to the store
// hangs forever. A process that hung would neither make IDs nor be restarted.
func TestKeeperPanics(t *testing.T) {
	if site := os.Getenv(foreignEnv); site != "" {
		panicAt(t, site)
		return
	}
	for _, site := range []string{
		"Get", "GetMany", "CAS", "Lineage", "Watch",
		"Begin", "Extend", "Stop", "Used", "Now", "Logger",
	} {
		t.Run(site, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKeeperPanics$", "-test.timeout=0")
			cmd.Env = append(os.Environ(), foreignEnv+"="+site)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			switch {
			case ctx.Err() != nil:
				t.Errorf("the process hangs: %s", out)
			case !errors.As(err, &exit) || exit.ExitCode() != 2 || !bytes.Contains(out, []byte("panic: of code at ")):
				t.Errorf("the process ends with %v: %s", err, out)
			}
		})
	}
}

// panicAt makes a Keeper's foreign code panic, and then does not end by itself.
func panicAt(t *testing.T, site string) {
	f := &foreignCode{site: site, does: func() { panic("of code at " + site) }}
	ctx := context.Background()
	var k *grant.Keeper
	switch site {
	case "Used", "Now": // while a request hangs
		f.hangs.Store(true)
		k = f.keeper(t)
		_ = k.Join(ctx)
		f.armed.Store(true)
		_ = k.Demand(ctx)
	case "Extend", "Stop":
		k = f.keeper(t)
		hold(t, k)
		f.armed.Store(true)
		f.ahead.Store(int64(50 * time.Second))
		if site == "Stop" {
			_ = k.Leave(ctx)
		}
		_ = k.Demand(ctx)
	default:
		f.armed.Store(true)
		k = f.keeper(t)
		_ = k.Join(ctx)
	}
	_ = k.Wait(ctx, func(grant.Status) bool { return false })
	select {}
}

// TestDeafStore: a store whose hints end is used without hints, and does not
// get more requests because of that.
func TestDeafStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &foreignCode{deaf: true}
		k := f.keeper(t)
		hold(t, k)
		before := k.Stats().Requests
		time.Sleep(time.Minute)
		if n := k.Stats().Requests - before; n > 8 {
			t.Errorf("%d requests in a minute", n)
		}
		must.Do(t, k.Close(t.Context()))
	})
}

// TestNewKeeperNeeds: without a store or a holder, NewKeeper panics with a
// sentence, and starts nothing.
func TestNewKeeperNeeds(t *testing.T) {
	for want, start := range map[string]func() *grant.Keeper{
		"grant: NewKeeper needs a store":  func() *grant.Keeper { return grant.NewKeeper(nil, "s", nil, new(member), nil) },
		"grant: NewKeeper needs a holder": func() *grant.Keeper { return grant.NewKeeper(new(memstore.Store), "s", nil, nil, nil) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			start().Abandon()
		}()
	}
}

// TestCloseTwice: a Close that waits for another one also obeys its context,
// and nothing is acquired meanwhile.
func TestCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &foreignCode{site: "CAS", does: func() { time.Sleep(4 * time.Second) }} // a slow store
		k := f.keeper(t)
		hold(t, k)
		f.armed.Store(true)
		first := make(chan error)
		go func() { first <- k.Close(t.Context()) }()
		synctest.Wait()
		if err := k.Join(t.Context()); err == nil {
			t.Error("Join during Close: no error")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second Close, for a second: %v, want that it has not returned", err)
		}
		must.Do(t, errors.Join(<-first, k.Close(t.Context())))
	})
}

// TestCloseGivesUp: with a store that takes no writes, Close ends after 20
// attempts, with an error.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &faultstore.Store{Store: populate(t, operations[:1])}
		m := newMember(s, "s")
		hold(t, m.Keeper)
		s.Reads.Store(true)
		before := s.Writes.Load()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, grant.ErrNotSent) || s.Writes.Load()-before != 20 {
			t.Errorf("Close = %v after %d attempts, want an error after 20", err, s.Writes.Load()-before)
		}
	})
}

// TestCloseLimit: Close gives the node ID back under any context, and ends by
// the context's deadline, or in five seconds if it has none or has ended. It
// leaves nothing running, which the bubble would detect.
func TestCloseLimit(t *testing.T) {
	deadline := func(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
	}
	cancelled := func(after time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(after, cancel)
			return ctx, cancel
		}
	}
	contexts := map[string]struct {
		of    func(context.Context) (context.Context, context.CancelFunc)
		limit time.Duration
	}{
		"without a deadline":        {cancelled(time.Hour), 5 * time.Second},
		"cancelled before":          {cancelled(0), 5 * time.Second},
		"cancelled during Close":    {cancelled(time.Second + 20*time.Millisecond), 5 * time.Second},
		"with a deadline":           {deadline(3 * time.Second), 2 * time.Second},
		"with a late deadline":      {deadline(11 * time.Second), 10 * time.Second},
		"with an expired deadline":  {deadline(500 * time.Millisecond), 5 * time.Second},
		"with a long past deadline": {deadline(-time.Hour), 5 * time.Second},
	}
	stores := map[string]func(*faultstore.Store){
		"slow":     func(s *faultstore.Store) { s.Delay = 50 * time.Millisecond },
		"failing":  func(s *faultstore.Store) { s.Cut.Store(true) },
		"hanging":  func(s *faultstore.Store) { s.Hangs.Store(true) },
		"readable": func(s *faultstore.Store) { s.Reads.Store(true) },
	}
	for when, c := range contexts {
		for which, fail := range stores {
			t.Run(when+", "+which+" store", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &faultstore.Store{Store: new(memstore.Store)}
					create(t, s, "s", config("default,epoch=0"), time.Now())
					k := newMember(s, "s").Keeper
					hold(t, k)
					fail(s)
					ctx, cancel := c.of(t.Context())
					defer cancel()
					time.Sleep(time.Second) // a context may end
					begin := time.Now()
					err := k.Close(ctx)
					took, back := time.Since(begin), k.Stats().Released == 1
					if works := which == "slow"; works && (err != nil || took > time.Second || !back) ||
						!works && (err == nil || took != c.limit || back) {
						t.Errorf("Close: %v after %v, given back: %t; it may take %v", err, took, back, c.limit)
					}
				})
			})
		}
	}
}

// TestAbandon: Abandon ends a Keeper without a request, and a Close that is in
// progress. The error of Close is the store's.
func TestAbandon(t *testing.T) {
	for _, closing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &faultstore.Store{Store: new(memstore.Store), Err: errors.New("no route")}
			create(t, s, "s", config("default,epoch=0"), time.Now())
			k := newMember(s, "s").Keeper
			hold(t, k)
			s.Cut.Store(true)
			closed := make(chan error, 1)
			if closing {
				go func() { closed <- k.Close(t.Context()) }()
				time.Sleep(time.Second)
			}
			before, begin := s.Requests.Load(), time.Now()
			k.Abandon()
			k.Abandon()
			if n, took := s.Requests.Load()-before, time.Since(begin); n > 0 || took > 0 {
				t.Errorf("Abandon: %d requests and %v, want none", n, took)
			}
			if err := k.Join(t.Context()); !errors.Is(err, firn.ErrClosed) {
				t.Errorf("Join after Abandon: %v, want ErrClosed", err)
			}
			if closing {
				if err := <-closed; !errors.Is(err, s.Err) {
					t.Errorf("Close, abandoned: %v, want the store's error", err)
				}
			}
		})
	}
}

// TestStatusAfterJoin: after Join has returned, Status does not describe an
// earlier attempt.
func TestStatusAfterJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &foreignCode{site: "Get", does: func() { time.Sleep(time.Second) }}
		k := f.keeper(t)
		hold(t, k)
		must.Do(t, k.Leave(t.Context()))
		if status, _ := k.Status(); status.Phase != grant.Leaving && status.Phase != grant.Idle {
			t.Errorf("after Leave: %v", status.Phase)
		}
		synctest.Wait()
		must.Get(grant.Detach(t.Context(), f, "s", nil))(t)
		must.Do(t, errors.Join(k.Join(t.Context()), k.Wait(t.Context(), func(s grant.Status) bool { return s.Err != nil })))
		f.armed.Store(true)
		must.Do(t, k.Join(t.Context()))
		if status, _ := k.Status(); status.Err != nil {
			t.Errorf("after Join: %v, and nothing was tried yet", status.Err)
		}
		must.Do(t, k.Close(t.Context()))
	})
}
