package grant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
)

// A fault is the way in which a store handles one request.
type fault int

const (
	notSent fault = iota // certainly nothing was done
	dropped              // nothing was done, but the caller does not know
	lost                 // it was done, but the caller does not know
	faults
)

// A faultyStore fails in its at-th request, and records whether it got there.
type faultyStore struct {
	grant.Store
	fault fault
	at, n int
}

var errFault = errors.New("the store fails")

func (f *faultyStore) hit() bool { f.n++; return f.n == f.at }

func (f *faultyStore) Get(ctx context.Context, key string) ([]byte, error) {
	if f.hit() {
		return nil, errFault
	}
	return f.Store.Get(ctx, key)
}

func (f *faultyStore) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	hit := f.hit()
	n := 0
	err := f.Store.List(ctx, prefix, func(key string, value []byte) bool {
		n++
		return (!hit || n == 1) && yield(key, value) // half of it, then the error
	})
	if hit {
		return errFault
	}
	return err
}

func (f *faultyStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if !f.hit() {
		return f.Store.CAS(ctx, key, old, next)
	}
	switch f.fault {
	case notSent:
		return false, fmt.Errorf("%w: %w", grant.ErrNotSent, errFault)
	case lost:
		if _, err := f.Store.CAS(ctx, key, old, next); err != nil {
			return false, err
		}
	}
	return false, errFault
}

// A cutStore accepts no writes once it is cut.
type cutStore struct {
	grant.Store
	cut atomic.Bool
}

func (s *cutStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if s.cut.Load() {
		return false, grant.ErrNotSent
	}
	return s.Store.CAS(ctx, key, old, next)
}

// TestFaults: an operation that meets an error of the store either reports it
// or completes anyway, and it can be run again.
func TestFaults(t *testing.T) { synctest.Test(t, testFaults) }

func testFaults(t *testing.T) {
	all := operations()
	for i, op := range all {
		for fault := range faults {
			for request := 1; ; request++ {
				s := populate(t, all[:i])
				f := &faultyStore{Store: s, fault: fault, at: request}
				err := op.do(t.Context(), f)
				what := fmt.Sprintf("%s, fault %d of request %d", op.name, fault, request)
				switch {
				case err == nil:
					op.done(t, s)
				case !errors.Is(err, errFault):
					t.Errorf("%s: %v, want the store's error", what, err)
				default:
					if err := op.do(t.Context(), s); err != nil {
						t.Errorf("%s, run again: %v", what, err)
					}
					op.done(t, s)
				}
				if t.Failed() {
					t.Fatal(what)
				}
				if f.n < request {
					break // it needs no more requests
				}
				if err == nil && fault == notSent {
					t.Errorf("%s: no error", what)
				}
			}
		}
	}
}

// TestNames: every operation rejects an invalid name before it asks the store.
func TestNames(t *testing.T) {
	f := &faultyStore{Store: new(memstore.Store)}
	for _, name := range []string{"", "a/b", ".", strings.Repeat("a", 128+1)} {
		_, create := grant.Create(t.Context(), f, name, config("default"), createdAt(now))
		_, lookup := grant.Lookup(t.Context(), f, name)
		_, attach := grant.Attach(t.Context(), f, name)
		_, detach := grant.Detach(t.Context(), f, name, nil)
		_, destroy := grant.Destroy(t.Context(), f, name, nil)
		_, purge := grant.Purge(t.Context(), f, name)
		_, fence := grant.Fence(t.Context(), f, name, nil)
		_, repair := grant.Repair(t.Context(), f, name, nil)
		all := []error{create, lookup, attach, detach, destroy, purge, fence, repair,
			grant.Nodes(t.Context(), f, name, func(grant.NodeInfo, error) bool { return true })}
		for i, err := range all {
			if err == nil || !strings.Contains(err.Error(), "name") {
				t.Errorf("operation %d with the name %q: %v", i, name, err)
			}
		}
	}
	if f.n != 0 {
		t.Errorf("%d requests of the store", f.n)
	}
	must.Do(t, grant.CheckName(strings.Repeat("a", 128)))
}

// TestStates: which operation is rejected in which state, and with which error.
func TestStates(t *testing.T) {
	all := operations()
	by := func(name string) operation {
		return all[slices.IndexFunc(all, func(op operation) bool { return op.name == name })]
	}
	way := map[grant.State][]operation{
		0:                {},
		grant.Attached:   {by("create")},
		grant.Detached:   {by("create"), by("detach")},
		grant.Destroyed:  {by("create"), by("fence"), by("destroy")},
		grant.Purged:     {by("create"), by("fence"), by("destroy"), by("purge")},
		grant.Detaching:  {by("create")}, // and see below
		grant.Destroying: {by("create")},
	}
	none, destroyed, other := grant.ErrNotFound, grant.ErrDestroyed, errors.New("any")
	want := map[string]map[grant.State]error{
		"create":  {grant.Detaching: nil, grant.Detached: nil, grant.Destroying: destroyed},
		"attach":  {0: none, grant.Destroying: destroyed, grant.Destroyed: destroyed, grant.Purged: destroyed},
		"detach":  {0: none, grant.Destroying: destroyed, grant.Destroyed: destroyed, grant.Purged: destroyed},
		"destroy": {0: none},
		"purge":   {0: none, grant.Attached: other, grant.Detaching: other, grant.Detached: other, grant.Destroying: other},
		"fence":   {0: none},
		"repair":  {0: none},
	}
	after := map[string]map[grant.State]grant.State{ // if it differs from the result of the operation
		"create":  {grant.Detaching: grant.Detaching, grant.Detached: grant.Detached},
		"destroy": {grant.Purged: grant.Purged},
	}
	leads := map[string]grant.State{
		"create": grant.Attached, "attach": grant.Attached, "detach": grant.Detached,
		"destroy": grant.Destroyed, "purge": grant.Purged,
	}
	for name, errs := range want {
		for state, ops := range way {
			s := populate(t, ops)
			brief, cancel := context.WithCancel(t.Context())
			stop := &grant.WaitOptions{Now: func() time.Time { return now }, Waiting: func([]grant.NodeInfo) { cancel() }}
			if state == grant.Detaching || state == grant.Destroying {
				put(t, s, "v1/s/n/0009", node("held", "o", now, now)) // its window lasts for another moment
				do := grant.Detach
				if state == grant.Destroying {
					do = grant.Destroy
				}
				if _, err := do(brief, s, "s", stop); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "9") {
					t.Fatalf("%v: stopped with %v", state, err)
				}
				put(t, s, "v1/s/n/0009", node("closing", "o", now.Add(-time.Millisecond), now))
			}
			cancel()
			before := keys(t, s)
			was, err := grant.Lookup(t.Context(), s, "s")
			if was.State != state || state != 0 && err != nil {
				t.Fatalf("it is %v, %v, want %v", was.State, err, state)
			}
			err = by(name).do(t.Context(), s)
			if strings.HasPrefix(fmt.Sprint(err), "no error, and") {
				err = nil // it is checked below
			}
			switch wanted := errs[state]; {
			case wanted == other && err != nil:
			case !errors.Is(err, wanted) || wanted == nil && err != nil:
				t.Errorf("%s in state %v: %v, want %v", name, state, err, wanted)
			}
			if errs[state] != nil {
				if !maps.Equal(before, keys(t, s)) {
					t.Errorf("%s in state %v was refused and wrote", name, state)
				}
				continue
			}
			info, err := grant.Lookup(t.Context(), s, "s")
			expect, ok := leads[name]
			if to, special := after[name][state]; special {
				expect, ok = to, true
			}
			if err != nil || ok && info.State != expect {
				t.Errorf("%s in state %v leads to %v, %v, want %v", name, state, info.State, err, expect)
			}
			// Only a creation and a fence change the incarnation.
			grows := name == "fence" || name == "create" && (state == 0 || state >= grant.Destroyed)
			if got := info.Incarnation - was.Incarnation; got > 1 || (got == 1) != grows {
				t.Errorf("%s in state %v: incarnation %d, before %d", name, state, info.Incarnation, was.Incarnation)
			}
			if name != "fence" && !info.Floor.Equal(was.Floor) {
				t.Errorf("%s in state %v: the floor is %v, before %v", name, state, info.Floor, was.Floor)
			}
			if after := keys(t, s); state == expect && withoutNonce(before) != withoutNonce(after) {
				t.Errorf("%s in state %v: %v, before %v", name, state, after, before)
			} else if confirms := name != "create"; state == expect && maps.Equal(before, after) == confirms {
				t.Errorf("%s in state %v wrote: %t, want %t", name, state, !confirms, confirms)
			}
		}
	}
}

// withoutNonce returns a configuration without its last field.
func withoutNonce(all map[string]string) string {
	config, _, _ := strings.Cut(all["v1/s/config"], `"nonce"`)
	return config
}

// A racingStore lets another process write a key between its being read and
// written, a number of times after a number of writes. It rejects a write whose
// nonce is not new, because then bytes could repeat.
type racingStore struct {
	grant.Store
	key          string
	after, times int
	write        func()
	nonces       []string // of all that was written
}

func (r *racingStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	var record struct{ Nonce string }
	if err := json.Unmarshal(next, &record); err != nil || len(record.Nonce) != 32 || slices.Contains(r.nonces, record.Nonce) {
		return false, fmt.Errorf("%s is written with a nonce that is not new: %s", key, next)
	}
	r.nonces = append(r.nonces, record.Nonce)
	if strings.HasPrefix(key, r.key) {
		if r.after--; r.after < 0 && r.times > 0 {
			r.times--
			r.write()
		}
	}
	return r.Store.CAS(ctx, key, old, next)
}

// TestRaces: an operation keeps its promise even if members write the same
// records at the same time.
func TestRaces(t *testing.T) { synctest.Test(t, testRaces) }

func testRaces(t *testing.T) {
	all := operations()
	for i, op := range all {
		for times := range 4 {
			for after := range 4 {
				for _, key := range []string{"v1/s/config", "v1/s/n/0003"} {
					what := fmt.Sprintf("%s, %d other writes of %s after %d", op.name, times, key, after)
					s := populate(t, all[:i])
					renewals := 0
					r := &racingStore{Store: s, key: key, after: after, times: times, write: func() {
						renewals++
						if key == "v1/s/config" {
							value := keys(t, s)[key]
							if value == "" {
								return
							}
							nonce := strings.Index(value, `"nonce":"`) + len(`"nonce":"`)
							put(t, s, key, value[:nonce]+fmt.Sprint(renewals%10)+value[nonce+1:])
							return
						}
						put(t, s, key, node("held", "o", now.Add(time.Duration(renewals-100)*time.Second), now))
					}}
					if err := op.do(t.Context(), r); err != nil {
						t.Errorf("%s: %v", what, err)
					}
					op.done(t, s)
					if t.Failed() {
						t.Fatal(what)
					}
				}
			}
		}
	}
}

// An unsureStore returns unknown results for its first writes, some of which
// are applied.
type unsureStore struct {
	grant.Store
	left, writes int
	down         bool // afterwards, nothing is sent
}

func (s *unsureStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	s.writes++
	if s.left--; s.left < 0 && s.down {
		return false, grant.NotSent(errors.New("down"))
	} else if s.left < 0 {
		return s.Store.CAS(ctx, key, old, next)
	}
	if s.left%2 == 0 {
		_, _ = s.Store.CAS(ctx, key, old, next)
	}
	return false, errFault
}

// TestSettles: a write with an unknown result is settled by another one; after
// five, the caller gets an error. The waits in between grow, and end with the
// context.
func TestSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for unsure := range 7 {
			s := &unsureStore{Store: populate(t, operations()[:1]), left: unsure}
			began := time.Now()
			_, err := grant.Attach(t.Context(), s, "s")
			fails := unsure >= 5
			if (err != nil) != fails || fails && (!errors.Is(err, errFault) || !strings.Contains(err.Error(), "the result of 5 writes is unknown")) {
				t.Errorf("%d writes of unknown result: %v", unsure, err)
			}
			writes := min(unsure+1, 5)
			waits := time.Duration(writes*(writes-1)/2) * 100 * time.Millisecond
			if s.writes != writes || time.Since(began) != waits {
				t.Errorf("%d writes of unknown result: %d writes in %v, want %d in %v", unsure, s.writes, time.Since(began), writes, waits)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := &unsureStore{Store: &racingStore{Store: populate(t, operations()[:1]), times: 1, write: cancel}, left: 4}
		if _, err := grant.Attach(ctx, s, "s"); !errors.Is(err, errFault) || s.writes > 2 {
			t.Errorf("%v after %d writes, of which the context ended in the first or second", err, s.writes)
		}
		// What a write of unknown result left is written again, even if it is
		// what the operation wants: a failover may lose what a read shows.
		for name, do := range map[string]func(grant.Store) error{
			"create": func(s grant.Store) error {
				_, err := grant.Create(t.Context(), s, "new", config("default"), createdAt(now))
				return err
			},
			"create what exists": func(s grant.Store) error {
				o := createdAt(now)
				o.Floor = now.Add(-time.Hour)
				for range 2 { // the first may have ended with an unknown result
					if _, err := grant.Create(t.Context(), s, "new", config("default"), o); err != nil {
						return err
					}
				}
				return nil
			},
			"window": func(s grant.Store) error {
				_, err := grant.SetWindow(t.Context(), s, "s", time.Hour)
				return err
			},
			"repair": func(s grant.Store) error {
				_, err := grant.Repair(t.Context(), s, "s", &grant.RepairOptions{Now: func() time.Time { return now }})
				return err
			},
		} {
			s := &unsureStore{Store: populate(t, operations()[:5]), left: 1}
			want := 2
			if name == "create what exists" || name == "repair" { // of the record, and that it was repaired
				want = 3
			}
			if err := do(s); err != nil || s.writes != want {
				t.Errorf("%s: %v after %d writes, the first of unknown result; want %d", name, err, s.writes, want)
			}
		}
		// A write that was certainly not sent says nothing about an earlier
		// one.
		s = &unsureStore{Store: populate(t, operations()[:1]), left: 1, down: true}
		if _, err := grant.Attach(t.Context(), s, "s"); !errors.Is(err, errFault) || errors.Is(err, grant.ErrNotSent) {
			t.Errorf("one write of unknown result, and others that were not sent: %v", err)
		}
	})
}
