package grant_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

// TestLookupOrCreate: a sequencer is found as it is, also if another process
// creates it between the look and the creation, and otherwise created.
func TestLookupOrCreate(t *testing.T) {
	const key = "v1/s/config"
	now := time.Now()
	for what, before := range map[string]int{"never": 0, "first": 1, "in between": 2} { // the request that another creates it before
		mem, requests := new(memstore.Store), 0
		s := &faultstore.Store{Store: mem, Fault: func(_ context.Context, r faultstore.Request) error {
			if r.Key == key {
				requests++
				if requests == before {
					create(t, mem, "s", config("hazelcast"), now)
				}
			}
			return r.Do()
		}}
		want := map[bool]string{false: "default", true: "hazelcast"}[before > 0]
		for range 2 {
			i, err := grant.LookupOrCreate(t.Context(), s, "s", config("default"), createdAt(now))
			if err != nil || i.Name != "s" || i.Incarnation != 1 || i.Config.Layout.String() != want {
				t.Errorf("another creates it %s: %+v, %v, want layout %s", what, i, err, want)
			}
		}
		if requests < before {
			t.Errorf("%s: only %d requests", what, requests)
		}
	}
	s := new(memstore.Store)
	faultstore.Put(t, s, key, `{"v":3,`)
	if i, err := grant.LookupOrCreate(t.Context(), s, "s", config("default"), nil); !errors.Is(err, grant.ErrDamaged) {
		t.Errorf("of a damaged record: %+v, %v", i, err)
	}
	if value := must.Get(s.Get(t.Context(), key))(t); string(value) != `{"v":3,` {
		t.Errorf("the damaged record is now %q", value)
	}
}

// TestSequencersInOrder: sequencers are listed by name, which is not the order
// of their keys, until yield returns false.
func TestSequencersInOrder(t *testing.T) {
	s := new(memstore.Store)
	want := []string{"B", "a", "a-b", "a-b-c", "a.b", "a.b-c", "a0", "a:b", "a_b", "aa", "b", "b-"}
	for i := range want {
		create(t, s, want[(i*5)%len(want)], config("default"), time.Now())
	}
	faultstore.Put(t, s, "v1/a.b/config", "no record")
	long := strings.Repeat("c", 129) // that no operation takes, in a record that can be read
	value, err := s.Get(t.Context(), "v1/a/config")
	must.Do(t, err)
	faultstore.Put(t, s, "v1/"+long+"/config", string(value))
	want = append(want, long)
	for n := range len(want) {
		var got []string
		err := grant.Sequencers(t.Context(), s, func(info grant.Info, err error) bool {
			if errors.Is(err, grant.ErrDamaged) != (info.Name == "a.b" || info.Name == long) {
				t.Errorf("%s: %v", info.Name, err)
			}
			got = append(got, info.Name)
			return len(got) <= n
		})
		if err != nil || !slices.Equal(got, want[:n+1]) {
			t.Errorf("it lists %v, %v, want %v", got, err, want[:n+1])
		}
	}
	cut := &faultstore.Store{Store: s}
	cut.Cut.Store(true)
	if err := grant.Sequencers(t.Context(), cut, func(grant.Info, error) bool { return true }); err == nil {
		t.Error("no error of a store that cannot be reached")
	}
}
