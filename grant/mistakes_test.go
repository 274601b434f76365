package grant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// TestKeeperMistakes: the behaviour of a Keeper between a machine, a store and
// a Holder, which no simulation of machines covers.
func TestKeeperMistakes(t *testing.T) {
	for _, row := range []struct {
		law   string
		check func(t *testing.T) string // what is wrong, or ""
	}{
		{"a release waits for the seal", checkSealed},
		{"a store that may have gone back is not written to", checkLineage},
		{"zero is a time", checkZero},
		{"the mark of a release is rounded up", checkRounding},
		{"a shrunk record freezes", checkShrunk},
		{"another's window freezes", checkOverlap},
	} {
		t.Run(row.law, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if wrong := row.check(t); wrong != "" {
					t.Error(wrong)
				}
			})
		})
	}
}

// A scriptedHolder is a Holder that follows a row.
type scriptedHolder struct {
	mu    sync.Mutex // guards begun
	begun []firn.Grant
	used  atomic.Pointer[time.Time]
	seal  func()
}

func (h *scriptedHolder) Begin(g firn.Grant) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = append(h.begun, g)
	return nil
}

func (h *scriptedHolder) Extend(time.Time) error { return nil }

// grants returns the grants that have begun.
func (h *scriptedHolder) grants() []firn.Grant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.begun)
}

func (h *scriptedHolder) Seal() {
	if h.seal != nil {
		h.seal()
	}
}

func (h *scriptedHolder) Used() time.Time {
	if t := h.used.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// attached returns a Keeper of this Holder that holds a node ID of a new
// sequencer.
func attached(t *testing.T, s grant.Store, h *scriptedHolder, now func() time.Time) *grant.Keeper {
	t.Helper()
	create(t, s, "s", config("default,epoch=-86400000"), now())
	k := grant.NewKeeper(s, grant.Settings{Name: "s", Nodes: &grant.Range{Lo: 7, Hi: 7}, Now: now}, h)
	t.Cleanup(func() { _ = k.Close(context.Background()) })
	if err := k.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := k.Wait(t.Context(), phase(grant.Holding)); err != nil {
		t.Fatal(err)
	}
	return k
}

// mark returns the mark of the node ID that attached holds.
func mark(t *testing.T, s grant.Store) (until time.Time) {
	t.Helper()
	if err := grant.Nodes(t.Context(), s, "s", func(n grant.NodeInfo, err error) bool {
		until = n.Until
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	return until
}

// givenBack returns the mark after a Keeper has given its node ID back.
func givenBack(t *testing.T, s grant.Store, k *grant.Keeper) time.Time {
	t.Helper()
	if err := k.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := k.Wait(t.Context(), phase(grant.Idle)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return mark(t, s)
}

// checkSealed: everything that a Holder uses until Seal has returned lies below
// the mark.
func checkSealed(t *testing.T) string {
	s, h := new(memstore.Store), new(scriptedHolder)
	h.seal = func() {
		time.Sleep(time.Second)
		if used := time.Now(); h.used.Load() == nil { // Close seals once more
			h.used.Store(&used)
		}
	}
	until := givenBack(t, s, attached(t, s, h, time.Now))
	time.Sleep(2 * time.Second)
	if used := h.Used(); until.Before(used) {
		return fmt.Sprintf("the number is given back up to %v, and was used up to %v", until, used)
	}
	return ""
}

func demand(t *testing.T, k *grant.Keeper) {
	t.Helper()
	if err := k.Demand(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A silentStore is a store that does not return its lineage, or that went back.
type silentStore struct {
	memstore.Store
	fails, back atomic.Bool
	cas         atomic.Int32
}

func (s *silentStore) Lineage(context.Context) (string, int64, error) {
	if s.fails.Load() {
		return "", 0, errors.New("no answer")
	}
	if s.back.Load() {
		return "another identity", 2, nil
	}
	return "identity", 2, nil
}

func (s *silentStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	s.cas.Add(1)
	return s.Store.CAS(ctx, key, old, next)
}

// checkLineage: a store that may have gone back is not written to.
func checkLineage(t *testing.T) string {
	s := new(silentStore)
	k := attached(t, s, new(scriptedHolder), time.Now)
	s.fails.Store(true)
	before := s.cas.Load()
	for range 20 {
		time.Sleep(time.Second)
		demand(t, k)
	}
	synctest.Wait()
	if n := s.cas.Load() - before; n > 0 {
		return fmt.Sprintf("%d writes while the store did not say where it was", n)
	}
	s.fails.Store(false)
	return ""
}

// checkZero: Unix time 0 is a valid time. A window that ends there ends, and
// one that begins there has a beginning.
func checkZero(t *testing.T) string {
	for _, at := range []time.Duration{-time.Hour, -30 * time.Second, 0} {
		began := time.Now()
		clock := func() time.Time { return time.Unix(0, 0).Add(at + time.Since(began)) }
		h := new(scriptedHolder)
		k := attached(t, new(memstore.Store), h, clock)
		want := firn.Grant{Node: 7, From: time.Unix(0, 0).Add(at), Until: time.Unix(0, 0).Add(at + 30*time.Second)}
		if got := h.grants()[0]; got.From.IsZero() || got.Until.IsZero() || !got.From.Equal(want.From) || !got.Until.Equal(want.Until) {
			return fmt.Sprintf("a window that begins at %v is %v, want %v", at, got, want)
		}
		if err := k.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return ""
}

// checkRounding: the mark of a node ID lies at or above what was used of it.
func checkRounding(t *testing.T) string {
	s, h := new(memstore.Store), new(scriptedHolder)
	k := attached(t, s, h, time.Now)
	used := time.Now().Add(700 * time.Microsecond)
	h.used.Store(&used)
	if until := givenBack(t, s, k); until.Before(used) {
		return fmt.Sprintf("the number is given back up to %v, and was used up to %v", until, used)
	}
	return ""
}

// checkShrunk: a member whose record is an earlier one, older than all that it
// remembers, detects that the store went back.
func checkShrunk(t *testing.T) string {
	s := new(memstore.Store)
	k := attached(t, s, new(scriptedHolder), time.Now)
	const key = "v1/s/n/0007"
	backup, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 { // more renewals than it remembers
		time.Sleep(10 * time.Second)
		demand(t, k)
	}
	synctest.Wait()
	now, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := s.CAS(t.Context(), key, now, backup); !ok {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	demand(t, k)
	time.Sleep(time.Second)
	if status, _ := k.Status(); !errors.Is(status.Err, grant.ErrRolledBack) {
		return fmt.Sprintf("the store went back, and the member says %+v", status)
	}
	return ""
}

// checkOverlap: a member seals and freezes if the store went back, and another
// claimed its node ID in its window and renewed since.
func checkOverlap(t *testing.T) string {
	s, h := new(memstore.Store), new(scriptedHolder)
	var sealed atomic.Bool
	h.seal = func() { sealed.Store(true) }
	k := attached(t, s, h, time.Now)
	const key = "v1/s/n/0007"
	use := func(k *grant.Keeper, times int) {
		for range times {
			time.Sleep(10 * time.Second)
			demand(t, k)
		}
		synctest.Wait()
	}
	backup, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	use(k, 40)
	value, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := s.CAS(t.Context(), key, value, backup); !ok {
		t.Fatal(err)
	}
	other := grant.NewKeeper(s, grant.Settings{Name: "s", Nodes: &grant.Range{Lo: 7, Hi: 7}, AllowClockAhead: true}, new(scriptedHolder))
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	if err := other.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(t.Context(), phase(grant.Holding)); err != nil {
		t.Fatal(err)
	}
	use(other, 12)
	use(k, 1)
	time.Sleep(time.Second)
	if status, _ := k.Status(); !errors.Is(status.Err, grant.ErrRolledBack) || !sealed.Load() {
		return fmt.Sprintf("another has its node ID in a store that went back: sealed %t, %+v", sealed.Load(), status)
	}
	return ""
}

// TestRepairBefore1970: a record without a span remains one while all times are
// negative.
func TestRepairBefore1970(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		clock := func() time.Time { return time.Unix(0, 0).Add(time.Since(began) - time.Hour) }
		s := new(memstore.Store)
		ahead := new(atomic.Int64)
		k := attached(t, s, new(scriptedHolder), func() time.Time { return clock().Add(time.Duration(ahead.Load())) })
		ahead.Store(int64(1000 * time.Hour))
		time.Sleep(time.Second)
		if err := k.Demand(t.Context()); err != nil { // the window grows with the clock, and so leaves no gap
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		before := mark(t, s)
		report, err := grant.Repair(t.Context(), s, "s", &grant.RepairOptions{Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Left) != 1 || len(report.Nodes) != 0 || !mark(t, s).Equal(before) {
			t.Errorf("Repair = %+v, and the mark goes from %v to %v: want it left", report, before, mark(t, s))
		}
	})
}

// TestFreezeAboveTheClock: a floor from before the store went back thaws no
// member, even if it lies above the member's clock: windows begin there while
// the clock is up to MaxAhead behind it.
func TestFreezeAboveTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(silentStore)
		create(t, s, "s", config("default,epoch=-86400000"), time.Now())
		report, err := grant.Fence(t.Context(), s, "s", nil)
		if err != nil {
			t.Fatal(err)
		}
		k := attached(t, s, new(scriptedHolder), time.Now)
		if !time.Now().Before(report.Floor) {
			t.Fatalf("it is %v, want a time before the floor %v", time.Now(), report.Floor)
		}
		s.back.Store(true)
		for range 3 * 60 { // a window, and time to acquire another node ID
			time.Sleep(time.Second)
			demand(t, k)
			synctest.Wait()
			// It may take 20 s to learn of the store, plus a request.
			if status, _ := k.Status(); time.Since(report.Floor) > 25*time.Second && !errors.Is(status.Err, grant.ErrRolledBack) {
				t.Fatalf("%v after the floor: %+v, want ErrRolledBack until there is another fence", time.Since(report.Floor), status)
			}
		}
	})
}

// TestClockSetBack: a process that has used times which its clock no longer
// reaches holds a node ID, and makes IDs again when its windows reach them.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := new(memstore.Store), new(scriptedHolder)
		k := attached(t, s, h, time.Now)
		used := time.Now().Add(time.Hour) // the clock was that far ahead
		h.used.Store(&used)
		givenBack(t, s, k)
		if err := k.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		for len(h.grants()) < 2 && time.Now().Before(used.Add(time.Minute)) {
			time.Sleep(time.Second)
			if status, _ := k.Status(); status.Phase == grant.Holding && time.Now().Before(used.Add(-time.Minute)) && status.Err == nil {
				t.Fatalf("%+v: want an error that says why there are no IDs", status)
			}
			demand(t, k)
			synctest.Wait()
		}
		if g := h.grants(); len(g) != 2 || g[1].From.Before(used) || !g[1].From.Before(g[1].Until) || time.Now().After(used) {
			t.Errorf("at %v the grants are %v, want a second one that begins at %v", time.Now(), g, used)
		}
	})
}
