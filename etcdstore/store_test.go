package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
	"github.com/firnid/firn/internal/test/calls"
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
	base := newPrefix()
	opened := func(prefix string) *store { return open(t, Options{Endpoints: []string{e.endpoint}, Prefix: prefix}) }
	keys := []string{"k/0", "k/1", "k/2"}
	stores := make(map[string]*store)
	for _, p := range []string{"/a", "/ab", "/A", "/a-", "/a0"} {
		stores[p] = opened(base + p)
		for _, key := range keys {
			calls.CAS(t, stores[p], key, "", p)
		}
	}
	for p, s := range stores {
		for prefix, want := range map[string][]string{"": keys, "k": keys, "\xff": nil, "\x00": nil} {
			got, values := calls.List(t, s, prefix)
			if !slices.Equal(got, want) || slices.ContainsFunc(got, func(key string) bool { return values[key] != p }) {
				t.Errorf("List(%q) of %s yields %q, want %q, each with %s", prefix, s.prefix, values, want, p)
			}
		}
	}
	calls.Get(t, opened("//"+base+"/ab/"), "k/0", "/ab")
	for _, bad := range []string{"a//b", "a b", "a/../b", "ö", "a\x00"} {
		_, err := Open(t.Context(), &Options{Endpoints: []string{e.endpoint}, Prefix: bad})
		calls.Error(t, "Open with prefix "+bad, err, grant.ErrOptions)
	}
}

// Entries that other programs write under the prefix are ignored if their key
// is invalid, and damaged if their value is.
func TestForeignKeys(t *testing.T) {
	e := sharedEtcd(t)
	s := open(t, Options{Endpoints: []string{e.endpoint}, Prefix: newPrefix()})
	for key, value := range map[string]string{"no key": "1", ".b": "1", "a": "1", "empty": ""} {
		must.Get(e.client(t, "", "").Put(t.Context(), s.prefix+key, value))(t)
	}
	calls.Damaged(t, s, "empty", "a", "empty value")
}

// A List of several pages shows the keys at one moment. If etcd compacts away
// the revision that it was reading, it continues, in order.
func TestListOfSeveralPages(t *testing.T) {
	e := sharedEtcd(t)
	ctx := t.Context()
	s := open(t, Options{Endpoints: []string{e.endpoint}, Prefix: newPrefix()})
	c := e.client(t, "", "")
	var keys []string
	for i := range 2*page + 10 {
		keys = append(keys, fmt.Sprintf("k/%05d", i))
	}
	calls.Fill(t, s, keys)
	seen := 0
	must.Do(t, s.List(ctx, "k/", func(key string, value []byte) bool {
		if seen++; seen == 1 {
			calls.CAS(t, s, keys[len(keys)-1], "0", "1")
			calls.CAS(t, s, "k/last", "", "1")
		}
		if string(value) != "0" {
			t.Errorf("List yields %s = %q, which was written after it had begun", key, value)
		}
		return true
	}))
	if seen != len(keys) {
		t.Errorf("List yields %d keys, want %d", seen, len(keys))
	}
	var got []string
	must.Do(t, s.List(ctx, "k/", func(key string, _ []byte) bool {
		got = append(got, key)
		if len(got)%page == page/2 {
			calls.CAS(t, s, fmt.Sprintf("other/%d", len(got)), "", "1")
			_, revision, err := s.Lineage(ctx)
			must.Do(t, err)
			must.Get(c.Compact(ctx, revision))(t)
		}
		return true
	}))
	if !slices.Equal(got, append(keys, "k/last")) {
		t.Errorf("List during compactions yields %d keys, sorted %v, want %d, sorted",
			len(got), slices.IsSorted(got), len(keys)+1)
	}
}

// linkTo makes a link to an etcd without TLS.
func linkTo(t *testing.T, e *etcd) *proc.Link {
	return proc.NewLink(t, strings.TrimPrefix(e.endpoint, "http://"))
}

func TestWatch(t *testing.T) {
	e := sharedEtcd(t)
	p := linkTo(t, e)
	o := Options{Endpoints: []string{p.Address}, Prefix: newPrefix()}
	direct := Options{Endpoints: []string{e.endpoint}, Prefix: o.Prefix}
	calls.Watch(t, open(t, o), open(t, direct), func(func(string)) { p.Reset() })
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
	if ok || !errors.Is(err, context.Canceled) || errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS whose answer is lost = %v, %v, want context.Canceled and not grant.ErrNotSent: it was applied", ok, err)
	}
	calls.Get(t, direct, "a", "1")

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
	calls.Get(t, direct, "b", "")
}
