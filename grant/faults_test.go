package grant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
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

var errFault = errors.New("the store fails")

// failsAt returns a store that fails in its at-th request.
func failsAt(s grant.Store, fault fault, at int) *faultstore.Store {
	f := &faultstore.Store{Store: s}
	f.Fault = func(_ context.Context, r faultstore.Request) error {
		switch {
		case f.Requests.Load() != int64(at):
			return r.Do()
		case r.Kind == grant.RequestCAS && fault == notSent:
			return grant.NotSent(errFault)
		case r.Kind == grant.RequestCAS && fault == lost, r.Kind == grant.RequestList: // a list fails half way
			if err := r.Do(); err != nil {
				return err
			}
		}
		return errFault
	}
	return f
}

// TestFaults: an operation that meets an error of the store either reports it
// or completes anyway, and it can be run again.
func TestFaults(t *testing.T) { synctest.Test(t, testFaults) }

func testFaults(t *testing.T) {
	for i, op := range operations {
		for fault := range faults {
			for request := 1; ; request++ {
				s := populate(t, operations[:i])
				f := failsAt(s, fault, request)
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
				if f.Requests.Load() < int64(request) {
					break // it needs no more requests
				}
				if err == nil && fault == notSent {
					t.Errorf("%s: no error", what)
				}
			}
		}
	}
}

// TestNames: every operation rejects an invalid name before it asks the store,
// and so does a member.
func TestNames(t *testing.T) {
	f := &faultstore.Store{Store: new(memstore.Store)}
	for _, name := range []string{"", "a/b", ".", strings.Repeat("a", 128+1)} {
		for _, op := range operations {
			if op.name == "sequencers" {
				continue // of all names
			}
			if _, err := run(t.Context(), f, op.name, name, now); err == nil || !strings.Contains(err.Error(), "name") {
				t.Errorf("%s with the name %q: %v", op.name, name, err)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		k := grant.NewKeeper(f, "a/b", nil, new(member), nil)
		must.Do(t, k.Join(t.Context()))
		synctest.Wait()
		if got, _ := k.Status(); !grant.IsFinal(got.Err) || got.Err.Error() != grant.CheckName("a/b").Error() {
			t.Errorf("the status of a member is %+v, want that of CheckName, and it is final", got)
		}
		time.Sleep(time.Minute)
		must.Do(t, k.Close(t.Context()))
	})
	if n := f.Requests.Load(); n != 0 {
		t.Errorf("%d requests of the store", n)
	}
	must.Do(t, grant.CheckName(strings.Repeat("a", 128)))
}

// TestStates: which operation is rejected in which state, and with which error,
// and to which state the others lead.
func TestStates(t *testing.T) {
	errs := map[string]error{"none": grant.ErrNotFound, "gone": grant.ErrDestroyed, "refused": nil}
	for name, row := range map[string]string{
		"":        "none    attached  detaching detached  destroying destroyed purged", // before
		"create":  "attached attached detaching detached  gone       attached  attached",
		"attach":  "none    attached  attached  attached  gone       gone      gone",
		"detach":  "none    detached  detached  detached  gone       gone      gone",
		"destroy": "none    destroyed destroyed destroyed destroyed  destroyed purged",
		"purge":   "none    refused   refused   refused   refused    purged    purged",
		"fence":   "none    attached  detaching detached  destroying destroyed purged",
		"repair":  "none    attached  detaching detached  destroying destroyed purged",
	} {
		for i, want := range strings.Fields(row) {
			state, s := grant.State(i), new(memstore.Store)
			if state != 0 {
				s = populate(t, []operation{operations[0], operations[4], operations[1]})
				faultstore.Put(t, s, "v1/s/config", strings.Replace(keys(t, s)["v1/s/config"], "attached", state.String(), 1))
			}
			before := keys(t, s)
			was, _ := grant.Lookup(t.Context(), s, "s")
			if name == "" {
				if was.State != state {
					t.Fatalf("it is %v, want %v", was.State, state)
				}
				continue
			}
			what := fmt.Sprintf("%s in state %v", name, state)
			_, err := run(t.Context(), s, name, "s", now)
			after := keys(t, s)
			if is, fails := errs[want]; fails {
				if err == nil || is != nil && !errors.Is(err, is) || !maps.Equal(before, after) {
					t.Errorf("%s: %v, want %s, and nothing written", what, err, want)
				}
				continue
			}
			info, lookup := grant.Lookup(t.Context(), s, "s")
			// Only a creation and a fence change the incarnation, and a fence the
			// floor.
			grows := name == "fence" || name == "create" && (state == 0 || state >= grant.Destroyed)
			if got := info.Incarnation - was.Incarnation; err != nil || lookup != nil || info.State.String() != want ||
				got > 1 || (got == 1) != grows || name != "fence" && !info.Floor.Equal(was.Floor) {
				t.Errorf("%s: %v, %v, and it is %+v, before %+v; want %s", what, err, lookup, info, was, want)
			}
			// What is there already is written again with another nonce, so that
			// it is durable; but not by a creation.
			if info.State == state && !grows && withoutNonce(before) != withoutNonce(after) ||
				info.State == state && !grows && maps.Equal(before, after) != (name == "create" || name == "repair") {
				t.Errorf("%s: %v, before %v", what, after, before)
			}
		}
	}
}

// withoutNonce returns a configuration without its last field.
func withoutNonce(all map[string]string) string {
	config, _, _ := strings.Cut(all["v1/s/config"], `"nonce"`)
	return config
}

// racing returns a store in which another process writes a key between its
// being read and written, a number of times after a number of writes. It
// rejects a write whose nonce is not new, because then bytes could repeat.
func racing(s grant.Store, key string, after, times int, write func()) *faultstore.Store {
	var nonces []string // of all that was written
	return &faultstore.Store{Store: s, Fault: func(_ context.Context, r faultstore.Request) error {
		if r.Kind != grant.RequestCAS {
			return r.Do()
		}
		var record struct{ Nonce string }
		if err := json.Unmarshal(r.Next, &record); err != nil || len(record.Nonce) != 32 || slices.Contains(nonces, record.Nonce) {
			return fmt.Errorf("%s is written with a nonce that is not new: %s", r.Key, r.Next)
		}
		nonces = append(nonces, record.Nonce)
		if strings.HasPrefix(r.Key, key) {
			if after--; after < 0 && times > 0 {
				times--
				write()
			}
		}
		return r.Do()
	}}
}

// TestRaces: an operation keeps its promise even if members write the same
// records at the same time.
func TestRaces(t *testing.T) { synctest.Test(t, testRaces) }

func testRaces(t *testing.T) {
	for i, op := range operations {
		for times := range 4 {
			for after := range 4 {
				for _, key := range []string{"v1/s/config", "v1/s/n/0003"} {
					what := fmt.Sprintf("%s, %d other writes of %s after %d", op.name, times, key, after)
					s := populate(t, operations[:i])
					renewals := 0
					r := racing(s, key, after, times, func() {
						renewals++
						if key == "v1/s/config" {
							value := keys(t, s)[key]
							if value == "" {
								return
							}
							nonce := strings.Index(value, `"nonce":"`) + len(`"nonce":"`)
							faultstore.Put(t, s, key, value[:nonce]+fmt.Sprint(renewals%10)+value[nonce+1:])
							return
						}
						faultstore.Put(t, s, key, node("held", "o", now.Add(time.Duration(renewals-100)*time.Second), now))
					})
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

// unsure returns a store that returns unknown results for its first writes,
// some of which are applied. It accepts no others if it is down.
func unsure(s grant.Store, left int, down bool) *faultstore.Store {
	return &faultstore.Store{Store: s, Fault: func(_ context.Context, r faultstore.Request) error {
		if r.Kind != grant.RequestCAS {
			return r.Do()
		}
		switch left--; {
		case left < 0 && down:
			return grant.NotSent(errors.New("down"))
		case left < 0:
			return r.Do()
		case left%2 == 0:
			_ = r.Do()
		}
		return errFault
	}}
}

// TestSettles: a write with an unknown result is settled by another one; after
// five, the caller gets an error. The waits in between grow, and end with the
// context.
func TestSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := range int64(7) {
			s := unsure(populate(t, operations[:1]), int(n), false)
			began := time.Now()
			_, err := grant.Attach(t.Context(), s, "s")
			fails := n >= 5
			if (err != nil) != fails || fails && (!errors.Is(err, errFault) || !strings.Contains(err.Error(), "the result of 5 writes is unknown")) {
				t.Errorf("%d writes of unknown result: %v", n, err)
			}
			writes := min(n+1, 5)
			waits := time.Duration(writes*(writes-1)/2) * 100 * time.Millisecond
			if s.Writes.Load() != writes || time.Since(began) != waits {
				t.Errorf("%d writes of unknown result: %d writes in %v, want %d in %v", n, s.Writes.Load(), time.Since(began), writes, waits)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := unsure(racing(populate(t, operations[:1]), "", 0, 1, cancel), 4, false)
		if _, err := grant.Attach(ctx, s, "s"); !errors.Is(err, errFault) || s.Writes.Load() > 2 {
			t.Errorf("%v after %d writes, of which the context ended in the first or second", err, s.Writes.Load())
		}
		// What a write of unknown result left is written again, even if it is
		// what the operation wants: a failover may lose what a read shows.
		for name, want := range map[string]int64{"create": 2, "window": 2, "repair": 3} { // of the record, and that it was repaired
			s, target := unsure(populate(t, operations[:5]), 1, false), "s"
			if name == "create" {
				target = "new"
			}
			if _, err := run(t.Context(), s, name, target, now); err != nil || s.Writes.Load() != want {
				t.Errorf("%s: %v after %d writes, the first of unknown result; want %d", name, err, s.Writes.Load(), want)
			}
		}
		o := createdAt(now)
		o.Floor = now.Add(-time.Hour)
		s = unsure(new(memstore.Store), 1, false)
		for want := int64(2); want <= 3; want++ { // the first may have ended with an unknown result
			if _, err := grant.Create(t.Context(), s, "s", config("default"), o); err != nil || s.Writes.Load() != want {
				t.Errorf("a creation with a floor: %v after %d writes, want %d", err, s.Writes.Load(), want)
			}
		}
		// A write that was certainly not sent says nothing about an earlier
		// one.
		s = unsure(populate(t, operations[:1]), 1, true)
		if _, err := grant.Attach(t.Context(), s, "s"); !errors.Is(err, errFault) || errors.Is(err, grant.ErrNotSent) {
			t.Errorf("one write of unknown result, and others that were not sent: %v", err)
		}
	})
}
