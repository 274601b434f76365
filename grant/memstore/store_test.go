package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/grant/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) grant.Store { return new(memstore.Store) }, nil)
}

// Properties of this Store that the contract does not require: Watch reports
// every change, several at once, and ends with the store.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s memstore.Store
		ctx, cancel := context.WithCancel(t.Context())
		one, other, elsewhere := s.Watch(ctx, "a"), s.Watch(t.Context(), "a"), s.Watch(t.Context(), "b")
		told := func(c <-chan struct{}) string {
			synctest.Wait()
			select {
			case _, open := <-c:
				if !open {
					return "closed"
				}
				return "told"
			default:
				return "nothing"
			}
		}
		want := func(what string, c <-chan struct{}, want string) {
			t.Helper()
			if got := told(c); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		cas := func(key, old, next string) {
			if _, err := s.CAS(t.Context(), key, []byte(old), []byte(next)); err != nil {
				t.Error(err)
			}
		}
		want("before any change", one, "nothing")
		cas("a", "", "1")
		cas("a", "1", "2")
		want("after two changes", one, "told")
		want("after two changes, again", one, "nothing")
		cas("a", "1", "3")
		want("after a refused CAS", one, "nothing")
		want("of another key", elsewhere, "nothing")
		want("the other watcher", other, "told")
		cancel()
		want("after its context", one, "closed")
		cas("a", "2", "3")
		want("the other watcher, after that", other, "told")
		want("of a bad key", s.Watch(t.Context(), "a//b"), "closed")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		want("after Close", other, "closed")
		want("after Close", elsewhere, "closed")
		want("begun after Close", s.Watch(t.Context(), "a"), "closed")
	})
}

// A List yields the values at the time of the call, whatever happens meanwhile.
func TestListIsOfOneMoment(t *testing.T) {
	var s memstore.Store
	ctx := t.Context()
	for i := range 5 {
		if ok, err := s.CAS(ctx, fmt.Sprintf("k/%d", i), nil, []byte("0")); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	n := 0
	err := s.List(ctx, "k/", func(key string, value []byte) bool {
		n++
		if string(value) != "0" {
			t.Errorf("List yields %q with %q, want the value of the moment of the call", key, value)
		}
		for i := range 9 {
			k := fmt.Sprintf("k/%d", i)
			now, err := s.Get(ctx, k)
			if err != nil {
				t.Error(err)
			}
			if _, err := s.CAS(ctx, k, now, fmt.Appendf(nil, "%s+", now)); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if err != nil || n != 5 {
		t.Errorf("List yields %d keys and returns %v, want 5", n, err)
	}
}

func ExampleStore() {
	ctx := context.Background()
	var s memstore.Store
	ok, err := s.CAS(ctx, "v1/orders/n/00042", nil, []byte("mine"))
	fmt.Println(ok, err)
	ok, err = s.CAS(ctx, "v1/orders/n/00042", nil, []byte("mine too"))
	fmt.Println(ok, err)
	_, err = s.CAS(ctx, "v1//n", nil, []byte("mine"))
	fmt.Println(errors.Is(err, grant.ErrNotSent))
	// Output:
	// true <nil>
	// false <nil>
	// true
}
