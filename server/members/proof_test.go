package members

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/nettest"
)

// copyOf is a store with what another one has.
func copyOf(t *testing.T, s grant.Store) grant.Store {
	t.Helper()
	c := new(memstore.Store)
	if err := s.List(t.Context(), "", func(key string, value []byte) bool {
		ok, err := c.CAS(t.Context(), key, nil, value)
		return ok && err == nil
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestProof: a proof is found in the store of the server that made it, and in
// no other one, nor in a copy that was made before.
func TestProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memstore.Store)
		a := New(store, Options{})
		if err := a.write(t.Context(), Member{}, time.Minute, time.Minute); err != nil {
			t.Fatal(err)
		}
		close(a.tried)
		before := copyOf(t, store)
		time.Sleep(nonceFor)
		old, err := a.Proof(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := a.write(t.Context(), Member{}, time.Minute, time.Minute); err != nil {
			t.Fatal(err)
		}
		now, err := a.Proof(t.Context())
		if err != nil || now.Nonce == old.Nonce {
			t.Fatalf("%v, %v: want a new nonce", now, err)
		}
		other := now
		other.Member = "another"
		elsewhere := now
		elsewhere.Record++
		for _, row := range []struct {
			what  string
			store grant.Store
			p     Proof
			want  error
		}{
			{"its own store", store, now, nil},
			{"its own store, a moment ago", store, old, nil},
			{"another store", new(memstore.Store), now, ErrOtherStore},
			{"a copy from before", before, now, ErrOtherStore},
			{"another server", store, other, ErrOtherStore},
			{"another record", store, elsewhere, ErrOtherStore},
			{"nothing", store, Proof{}, ErrOtherStore},
			{"no nonce", store, Proof{Member: now.Member, Record: now.Record}, ErrOtherStore},
			{"a record that cannot be", store, Proof{Member: now.Member, Record: -1, Nonce: now.Nonce}, ErrOtherStore},
		} {
			if err := NewVerifier(row.store).Verify(t.Context(), row.p); !errors.Is(err, row.want) {
				t.Errorf("%s: %v, want %v", row.what, err, row.want)
			}
		}
		time.Sleep(nonceFor)
		if err := a.write(t.Context(), Member{}, time.Minute, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := NewVerifier(store).Verify(t.Context(), old); !errors.Is(err, ErrOtherStore) {
			t.Errorf("long ago: %v, want %v", err, ErrOtherStore)
		}
	})
}

// A counting store counts reads.
type counting struct {
	nettest.Store
	gets int
}

func (c *counting) Get(ctx context.Context, key string) ([]byte, error) {
	c.gets++
	return c.Store.Get(ctx, key)
}

// TestVerifyOnce: a proof that was found is not looked for again, also while
// the store does not answer; one that was not found, or could not be looked
// for, is.
func TestVerifyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: nettest.Store{Store: new(memstore.Store)}}
		a := New(store, Options{})
		if err := a.write(t.Context(), Member{}, time.Minute, time.Minute); err != nil {
			t.Fatal(err)
		}
		close(a.tried)
		p, err := a.Proof(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := NewVerifier(store)
		check := func(what string, gets int, good bool) {
			t.Helper()
			store.gets = 0
			if err := v.Verify(t.Context(), p); (err == nil) != good || errors.Is(err, ErrOtherStore) || store.gets != gets {
				t.Errorf("%s: %v and %d reads, want %d", what, err, store.gets, gets)
			}
		}
		store.Cut.Store(true)
		check("it does not answer", 1, false)
		store.Cut.Store(false)
		check("first", 1, true)
		store.Cut.Store(true)
		check("again", 0, true)
		time.Sleep(provedFor)
		check("long after, without the store", 1, false)
		store.Cut.Store(false)
		check("long after", 1, true)
	})
}

// TestUnlisted: a server that cannot write its record proves nothing, once what
// it wrote is old; the first proof waits for the first write.
func TestUnlisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &nettest.Store{Store: new(memstore.Store)}
		store.Cut.Store(true)
		a := New(store, Options{})
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Proof(done); !errors.Is(err, context.Canceled) {
			t.Errorf("before it runs: %v, want that it waits", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { a.Run(ctx, host("h")); close(ended) }()
		if _, err := a.Proof(ctx); !errors.Is(err, ErrUnlisted) {
			t.Errorf("it could not be written: %v, want %v", err, ErrUnlisted)
		}
		store.Cut.Store(false)
		time.Sleep(11 * time.Second)
		if _, err := a.Proof(ctx); err != nil {
			t.Error(err)
		}
		store.Cut.Store(true)
		time.Sleep(20 * time.Second)
		if _, err := a.Proof(ctx); err != nil {
			t.Errorf("20 s after the last write: %v", err)
		}
		time.Sleep(11 * time.Second)
		if _, err := a.Proof(ctx); !errors.Is(err, ErrUnlisted) {
			t.Errorf("31 s after the last write: %v, want %v", err, ErrUnlisted)
		}
		stop()
		<-ended
	})
}

// TestNonceIsNotListed: nonces are for servers, and not for people who list
// members.
func TestNonceIsNotListed(t *testing.T) {
	store := new(memstore.Store)
	a := New(store, Options{})
	if err := a.write(t.Context(), Member{Host: "h"}, time.Minute, time.Minute); err != nil {
		t.Fatal(err)
	}
	all, err := NewLister(store).List(t.Context(), time.Now())
	if err != nil || len(all) != 1 || all[0].Host != "h" {
		t.Fatal(all, err)
	}
	text, _ := json.Marshal(all[0])
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil || keys["nonce"] != nil || keys["nonce_before"] != nil {
		t.Errorf("%s, %v", text, err)
	}
}
