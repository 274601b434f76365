package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
)

// oddKeys returns keys that some store may confuse or reject. They are not in
// order.
func oddKeys() []string {
	return []string{
		"a", "A", "b", "ab", "aB", "Ab", "AB", "a/b", "a/B", "A/b", "a/b/c", "a-b", "a.b", "a_b", "a:b", "axb", "aa/b",
		"a/bc", "ab/c", // parts and wildcards
		"a.", "a-", "a_", "a:", "a..", "a.-", "a/0.", "a0", // ends that a store may cut off
		"0", "00", "1", "01", "42", "00042", "0x2a", "1e3", "v1/orders/n/00042", "v1/orders/n/00043", "v1/Orders/n/00042",
		"v1/orders/config", // numbers
		"con", "CON", "nul", "aux.txt", "com1", "lpt1.a", "prn/x", "a.lock", "a.tmp", "lock/a", "tmp/a", "rec/a",
		"desktop.ini", // names with a meaning elsewhere
		strings.Repeat("a", 100), strings.Repeat("a", 255), strings.Repeat("a", 255) + "b", strings.Repeat("a", 255) + "B",
		strings.Repeat("A", 256), strings.Repeat("a", 255) + ".",
		strings.Repeat("a/", 127) + "ab", strings.Repeat("a/", 127) + "aB", strings.Repeat("Z:", 128),
		strings.Repeat("z", 128) + "/" + strings.Repeat("z", 127),
	}
}

func testKeys(t *testing.T, su suite) {
	s := su.new(t)
	keys := oddKeys()
	for _, key := range keys {
		must.Do(t, grant.CheckKey(key))
		s.want(key, "")
		s.cas(key, "", "of "+key)
	}
	for i, key := range keys {
		s.want(key, "of "+key)
		s.cas(key, "of "+key, fmt.Sprint("now ", i))
	}
	for i, key := range keys {
		s.want(key, fmt.Sprint("now ", i))
	}
	list := func(s *subject, prefix string) {
		t.Helper()
		want := slices.DeleteFunc(slices.Sorted(slices.Values(keys)),
			func(key string) bool { return !strings.HasPrefix(key, prefix) })
		got, values := s.list(prefix)
		sameKeys(t, fmt.Sprintf("List(%.60q)", prefix), got, want)
		for key, value := range values {
			if want := fmt.Sprint("now ", slices.Index(keys, key)); value != want {
				t.Errorf("List(%.60q) yields %q with %q, want %q", prefix, key, value, want)
			}
		}
	}
	for _, prefix := range []string{
		"", "a", "A", "a/", "a/b", "a/b/", "a_", "a.", "a-", "a:", "v1/", "v1/orders/n/", "v1/orders/n/0", "v1/o", "v1/O",
		"0", "z", "lock",
		strings.Repeat("a", 254), strings.Repeat("a", 256), strings.Repeat("a", 300), strings.Repeat("a/", 100),
		// Prefixes that no key has, and characters that are special in some
		// databases.
		"nokey", "/", "/a", "a%", "%", "_", "*", "a*", "a?", "[a]", `a\`, "a//", "\x00", "a\x00", "\xff", "ö", "'", " ",
		"a ", "..", "../",
	} {
		list(s, prefix)
	}
	if su.reopen == nil {
		return
	}
	must.Do(t, s.Close())
	s = su.again(t, s)
	list(s, "")
	s.cas(keys[0], "now 0", "later")
}

func testBadKeys(t *testing.T, su suite) {
	s := su.new(t)
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".a", "-a", "_a", ":a", "a/-b", "a/.b",
		"a b", " a", "a ", "a\x00", "\x00", "a\nb", "ö", "a\xff", `a\b`, `c:\a`, "a%b", "a*", "a?", "a,b", "a+b", "a=b",
		"a!b", "a~b", "a@b", `"a"`, "'",
		strings.Repeat("a", 256+1), strings.Repeat("a", 1<<16),
	} {
		_, err := s.Get(s.ctx, key)
		calls.Error(t, fmt.Sprintf("Get(%.60q)", key), err, grant.ErrNotSent)
		ok, err := s.CAS(s.ctx, key, nil, []byte("1"))
		if ok {
			t.Errorf("CAS(%.60q) = true, want an error", key)
		}
		calls.Error(t, fmt.Sprintf("CAS(%.60q)", key), err, grant.ErrNotSent)
	}
	if keys, _ := s.list(""); len(keys) > 0 {
		t.Errorf("List yields %q, want nothing: nothing was stored", keys)
	}
}
