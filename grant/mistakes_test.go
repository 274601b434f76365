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
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
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

func (h *scriptedHolder) Stop() {
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

// joined returns a Keeper of this Holder that holds a node ID of a new
// sequencer.
func joined(t *testing.T, s grant.Store, h *scriptedHolder, now func() time.Time) *grant.Keeper {
	t.Helper()
	create(t, s, "s", config("default,epoch=-86400000"), now())
	k := grant.NewKeeper(s, "s", nil, h, &grant.MemberOptions{Nodes: &grant.NodeRange{Lo: 7, Hi: 7}, Now: now})
	t.Cleanup(func() { _ = k.Close(context.Background()) })
	hold(t, k)
	return k
}

// mark returns the mark of the node ID that joined holds.
func mark(t *testing.T, s grant.Store) (until time.Time) {
	t.Helper()
	must.Do(t, grant.Nodes(t.Context(), s, "s", func(n grant.NodeInfo, err error) bool {
		until = n.Until
		return err == nil
	}))
	return until
}

// givenBack returns the mark after a Keeper has given its node ID back.
func givenBack(t *testing.T, s grant.Store, k *grant.Keeper) time.Time {
	t.Helper()
	must.Do(t, k.Leave(t.Context()))
	must.Do(t, k.Wait(t.Context(), phase(grant.Idle)))
	synctest.Wait()
	return mark(t, s)
}

// checkSealed: everything that a Holder uses until Stop has returned lies below
// the mark.
func checkSealed(t *testing.T) string {
	s, h := new(memstore.Store), new(scriptedHolder)
	h.seal = func() {
		time.Sleep(time.Second)
		if used := time.Now(); h.used.Load() == nil { // Close seals once more
			h.used.Store(&used)
		}
	}
	until := givenBack(t, s, joined(t, s, h, time.Now))
	time.Sleep(2 * time.Second)
	if used := h.Used(); until.Before(used) {
		return fmt.Sprintf("the number is given back up to %v, and was used up to %v", until, used)
	}
	return ""
}

func demand(t *testing.T, k *grant.Keeper) {
	t.Helper()
	must.Do(t, k.Demand(t.Context()))
}

// A lineageStore is a store with a lineage, which it may not return.
type lineageStore struct {
	faultstore.Store
	silent atomic.Bool
}

func (s *lineageStore) Lineage(context.Context) (string, int64, error) {
	if s.silent.Load() {
		return "", 0, errors.New("no answer")
	}
	return "identity", 2, nil
}

// checkLineage: a store that may have gone back is not written to.
func checkLineage(t *testing.T) string {
	s := &lineageStore{Store: faultstore.Store{Store: new(memstore.Store)}}
	k := joined(t, s, new(scriptedHolder), time.Now)
	s.silent.Store(true)
	before := s.Writes.Load()
	for range 20 {
		time.Sleep(time.Second)
		demand(t, k)
	}
	synctest.Wait()
	if n := s.Writes.Load() - before; n > 0 {
		return fmt.Sprintf("%d writes while the store did not say where it was", n)
	}
	s.silent.Store(false)
	return ""
}

// checkZero: Unix time 0 is a valid time. A window that ends there ends, and
// one that begins there has a beginning.
func checkZero(t *testing.T) string {
	for _, at := range []time.Duration{-time.Hour, -30 * time.Second, 0} {
		began := time.Now()
		clock := func() time.Time { return time.Unix(0, 0).Add(at + time.Since(began)) }
		h := new(scriptedHolder)
		k := joined(t, new(memstore.Store), h, clock)
		want := firn.Grant{Node: 7, From: time.Unix(0, 0).Add(at), Until: time.Unix(0, 0).Add(at + 30*time.Second)}
		if got := h.grants()[0]; got.From.IsZero() || got.Until.IsZero() || !got.From.Equal(want.From) || !got.Until.Equal(want.Until) {
			return fmt.Sprintf("a window that begins at %v is %v, want %v", at, got, want)
		}
		must.Do(t, k.Close(t.Context()))
	}
	return ""
}

// checkRounding: the mark of a node ID lies at or above what was used of it.
func checkRounding(t *testing.T) string {
	s, h := new(memstore.Store), new(scriptedHolder)
	k := joined(t, s, h, time.Now)
	used := time.Now().Add(700 * time.Microsecond)
	h.used.Store(&used)
	if until := givenBack(t, s, k); until.Before(used) {
		return fmt.Sprintf("the number is given back up to %v, and was used up to %v", until, used)
	}
	return ""
}
