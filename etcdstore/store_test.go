package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

func TestStore(t *testing.T) {
	e := sharedEtcd(t)
	storetest.Run(t, func(t *testing.T) grant.Store {
		return open(t, Options{Endpoints: []string{e.endpoint}, Prefix: newPrefix()})
	}, func(t *testing.T, first grant.Store) grant.Store {
		return open(t, Options{Endpoints: []string{e.endpoint}, Prefix: first.(*store).prefix})
	})
}

// Stores with different prefixes are independent, even if one prefix begins
// like another; slashes at the ends of a prefix are ignored.
func TestPrefixes(t *testing.T) {
	e := sharedEtcd(t)
	ctx := t.Context()
	base := newPrefix()
	var stores []*store
	for _, p := range []string{"/a", "/ab", "/A", "/a-", "/a0"} {
		s := open(t, Options{Endpoints: []string{e.endpoint}, Prefix: base + p})
		stores = append(stores, s)
		for i := range 3 {
			if ok, err := s.CAS(ctx, fmt.Sprintf("k/%d", i), nil, []byte(p)); !ok || err != nil {
				t.Fatalf("CAS of key k/%d of prefix %q = %v, %v, want true", i, p, ok, err)
			}
		}
	}
	for _, s := range stores {
		for _, prefix := range []string{"", "k", "\xff", "\x00"} {
			n := 0
			err := s.List(ctx, prefix, func(key string, value []byte) bool {
				if s.prefix != "/"+base+string(value)+"/" {
					t.Errorf("List(%q) of %s yields %q with %q", prefix, s.prefix, key, value)
				}
				n++
				return true
			})
			want := 3
			if prefix > "l" || prefix == "\x00" {
				want = 0
			}
			if n != want || err != nil {
				t.Errorf("List(%q) of %s yields %d keys, %v, want %d", prefix, s.prefix, n, err, want)
			}
		}
	}
	same := open(t, Options{Endpoints: []string{e.endpoint}, Prefix: "//" + base + "/ab/"})
	if v, err := same.Get(ctx, "k/0"); string(v) != "/ab" || err != nil {
		t.Errorf("Get of the same prefix with other slashes = %q, %v, want %q", v, err, "/ab")
	}
	for _, bad := range []string{"a//b", "a b", "a/../b", "ö", "a\x00"} {
		if _, err := Open(ctx, &Options{Endpoints: []string{e.endpoint}, Prefix: bad}); !errors.Is(err, grant.ErrOptions) {
			t.Errorf("Open with prefix %q = %v, want grant.ErrOptions", bad, err)
		}
	}
}

// Entries that other programs write under the prefix are ignored if their key
// is invalid, and an error if their value is.
func TestForeignKeys(t *testing.T) {
	e := sharedEtcd(t)
	ctx := t.Context()
	s := open(t, Options{Endpoints: []string{e.endpoint}, Prefix: newPrefix()})
	c := e.client(t, "", "")
	defer func() { _ = c.Close() }()
	for _, key := range []string{"no key", "a", ".b"} {
		must.Get(c.Put(ctx, s.prefix+key, "x"))(t)
	}
	var got []string
	if err := s.List(ctx, "", func(key string, _ []byte) bool { got = append(got, key); return true }); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("List yields %q, %v, want only a", got, err)
	}
	must.Get(c.Put(ctx, s.prefix+"empty", ""))(t)
	if v, err := s.Get(ctx, "empty"); !errors.Is(err, grant.ErrDamaged) {
		t.Errorf("Get of an empty value = %q, %v, want ErrDamaged: nil would mean that the key is absent", v, err)
	}
	// If it is one of many, the others can be read.
	if all, err := s.GetMany(ctx, []string{"empty", "a"}); err != nil || !strings.Contains(string(all[0]), "empty value") || string(all[1]) != "x" {
		t.Errorf("GetMany with an empty value = %q, %v, want what is wrong, and x", all, err)
	}
	shown := make(map[string]string)
	if err := s.List(ctx, "", func(key string, value []byte) bool { shown[key] = string(value); return true }); err != nil || shown["a"] != "x" || !strings.Contains(shown["empty"], "empty value") {
		t.Errorf("List with an empty value = %q, %v, want what is wrong, and x", shown, err)
	}
	if ok, err := s.CAS(ctx, "empty", nil, []byte("1")); ok || err != nil {
		t.Errorf("CAS of a key with an empty value, from absent = %v, %v, want false", ok, err)
	}
}

// A List of several pages shows the keys at one moment. If etcd compacts away
// the revision that it was reading, it continues, in order.
func TestListOfSeveralPages(t *testing.T) {
	e := sharedEtcd(t)
	ctx := t.Context()
	s := open(t, Options{Endpoints: []string{e.endpoint}, Prefix: newPrefix()})
	c := e.client(t, "", "")
	defer func() { _ = c.Close() }()
	const n = 2*page + 10
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < n; i += 8 {
				if ok, err := s.CAS(ctx, fmt.Sprintf("k/%05d", i), nil, []byte("1")); !ok || err != nil {
					t.Errorf("CAS = %v, %v", ok, err)
				}
			}
		})
	}
	wg.Wait()
	seen := 0
	err := s.List(ctx, "k/", func(key string, value []byte) bool {
		if seen++; seen == 1 {
			ok, err := s.CAS(ctx, fmt.Sprintf("k/%05d", n-1), []byte("1"), []byte("2"))
			added, err2 := s.CAS(ctx, fmt.Sprintf("k/%05d", n), nil, []byte("2"))
			if !ok || !added || errors.Join(err, err2) != nil {
				t.Errorf("CAS = %v, %v; %v, %v", ok, err, added, err2)
			}
		}
		if string(value) != "1" {
			t.Errorf("List yields %s = %q, which was written after it had begun", key, value)
		}
		return true
	})
	if err != nil || seen != n {
		t.Errorf("List yields %d keys, %v, want %d", seen, err, n)
	}
	var got []string
	err = s.List(ctx, "k/", func(key string, _ []byte) bool {
		got = append(got, key)
		if len(got)%page == page/2 {
			if ok, err := s.CAS(ctx, fmt.Sprintf("other/%d", len(got)), nil, []byte("1")); !ok || err != nil {
				t.Errorf("CAS = %v, %v", ok, err)
			}
			_, revision, err := s.Lineage(ctx)
			if err != nil {
				t.Error(err)
			}
			if _, err := c.Compact(ctx, revision); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if err != nil || len(got) != n+1 || !slices.IsSorted(got) {
		t.Errorf("List yields %d keys, sorted %v, %v, want %d, sorted", len(got), slices.IsSorted(got), err, n+1)
	}
}

// linkTo makes a link to an etcd without TLS.
func linkTo(t *testing.T, e *etcd) *proc.Link {
	return proc.NewLink(t, strings.TrimPrefix(e.endpoint, "http://"))
}

// TestWatch checks what the contract leaves open: a watch reports each change
// soon, and continues after its connection was cut.
func TestWatch(t *testing.T) {
	p := linkTo(t, sharedEtcd(t))
	s := open(t, Options{Endpoints: []string{p.Address}, Prefix: newPrefix()})
	told := s.Watch(t.Context(), "a")
	wait := func(what string) {
		t.Helper()
		select {
		case _, open := <-told:
			if !open {
				t.Fatalf("%s: the channel is closed", what)
			}
		case <-time.After(must.Patience):
			t.Fatalf("%s: nothing is told", what)
		}
	}
	wait("at the beginning")
	old := []byte(nil)
	for i := range 3 {
		next := fmt.Appendf(nil, "%d", i)
		if ok, err := s.CAS(t.Context(), "a", old, next); !ok || err != nil {
			t.Fatal(ok, err)
		}
		wait(fmt.Sprintf("after change %d", i))
		old = next
		p.Reset()
		for { // until it is connected again
			if _, err := s.Get(t.Context(), "a"); err == nil {
				break
			}
		}
	}
	must.Do(t, s.Close())
	for range told { // it ends
	}
}

// TestUnknown: a CAS that was applied and whose context ends before the answer
// has an unknown result; a CAS that could not be sent fails with
// grant.ErrNotSent. TestSendOnce has the answers of servers.
func TestUnknown(t *testing.T) {
	e := sharedEtcd(t)
	p := linkTo(t, e)
	prefix := newPrefix()
	s := open(t, Options{Endpoints: []string{p.Address}, Prefix: prefix})
	direct := open(t, Options{Endpoints: []string{e.endpoint}, Prefix: prefix})
	get := func(key string) string {
		t.Helper()
		return string(must.Get(direct.Get(t.Context(), key))(t))
	}
	p.CutAnswers(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for v := []byte(nil); string(v) != "1" && t.Context().Err() == nil; {
			v, _ = direct.Get(t.Context(), "a")
		}
		cancel()
	}()
	ok, err := s.CAS(ctx, "a", nil, []byte("1"))
	if ok || !errors.Is(err, context.Canceled) || errors.Is(err, grant.ErrNotSent) || get("a") != "1" {
		t.Errorf("CAS whose answer is lost = %v, %v, want context.Canceled and not grant.ErrNotSent: it was applied", ok, err)
	}

	p.Cut(true)
	for begin, sure := time.Now(), false; !sure; {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		ok, err := s.CAS(ctx, "b", nil, []byte("1"))
		cancel()
		if ok || err == nil || time.Since(begin) > must.Patience {
			t.Fatalf("CAS without etcd = %v, %v, want an error, and soon grant.ErrNotSent", ok, err)
		}
		sure = errors.Is(err, grant.ErrNotSent)
	}
	if v := get("b"); v != "" {
		t.Errorf("Get = %q, want nothing", v)
	}
}

// waitFor waits until a store is connected again.
func waitFor(t *testing.T, s *store) {
	t.Helper()
	must.Await(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := s.Get(ctx, "a")
		return err == nil
	}, "it is connected")
}
