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
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
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
		want := func(what string, c <-chan struct{}, want string) {
			t.Helper()
			synctest.Wait()
			got := "nothing"
			select {
			case _, open := <-c:
				got = map[bool]string{true: "told", false: "closed"}[open]
			default:
			}
			if got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		want("before any change", one, "nothing")
		calls.CAS(t, &s, "a", "", "1")
		calls.CAS(t, &s, "a", "1", "2")
		want("after two changes", one, "told")
		want("after two changes, again", one, "nothing")
		calls.Refused(t, &s, "a", "1", "3")
		want("after a refused CAS", one, "nothing")
		want("of another key", elsewhere, "nothing")
		want("the other watcher", other, "told")
		cancel()
		want("after its context", one, "closed")
		calls.CAS(t, &s, "a", "2", "3")
		want("the other watcher, after that", other, "told")
		want("of a bad key", s.Watch(t.Context(), "a//b"), "closed")
		must.Do(t, s.Close())
		want("after Close", other, "closed")
		want("after Close", elsewhere, "closed")
		want("begun after Close", s.Watch(t.Context(), "a"), "closed")
	})
}

// A List yields the values at the time of the call, whatever happens meanwhile.
func TestListIsOfOneMoment(t *testing.T) {
	var s memstore.Store
	keys := []string{"k/0", "k/1", "k/2", "k/3", "k/4"}
	calls.Fill(t, &s, keys)
	n := 0
	must.Do(t, s.List(t.Context(), "k/", func(key string, value []byte) bool {
		if n++; n == 1 {
			for _, key := range keys {
				calls.CAS(t, &s, key, "0", "1")
				calls.CAS(t, &s, key+"0", "", "1")
			}
		}
		if string(value) != "0" {
			t.Errorf("List yields %q with %q, want the value of the moment of the call", key, value)
		}
		return true
	}))
	if n != len(keys) {
		t.Errorf("List yields %d keys, want %d", n, len(keys))
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
