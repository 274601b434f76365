package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
)

// testSteps makes calls of CAS on two keys, and compares the store with a map
// after each.
func testSteps(t *testing.T, su suite) {
	s := su.new(t)
	values := make(map[string]string)
	for _, c := range []struct{ key, old, next string }{ // "" means absent
		{"a", "x", "1"}, // refused: it is absent
		{"a", "", "1"},
		{"a", "", "2"},
		{"a", "", "1"}, // not applied, even with the value that is there; see below
		{"b", "", "0"},
		{"a", "1", "2"},
		{"a", "1", "3"}, // refused: the previous value
		{"a", "2", "2"}, // by itself
		{"a", "2", "1"}, // by what was there before: only the value counts
		{"a", bytesOf(4096 + 1), "4"},
		{"a", "1", bytesOf(4096)}, // longer and shorter ones
		{"a", bytesOf(4096), "2"},
		{"a", "2", bytesOf(300)},
		{"a", bytesOf(300), bytesOf(4096)},
		{"b", "0", "1"},
	} {
		ok, err := s.CAS(s.ctx, c.key, []byte(c.old), []byte(c.next))
		// The old value may be longer than any value, and so an error. And a
		// store that decides by the stored bytes cannot know whether a refused
		// write was applied if it finds the new value.
		mayFail := len(c.old) > 4096 || values[c.key] == c.next && values[c.key] != c.old
		if want := values[c.key] == c.old; ok != want || err != nil && !mayFail {
			t.Fatalf("CAS(%q, %.60q, %.60q) = %v, %v, want %v", c.key, c.old, c.next, ok, err, want)
		}
		if ok {
			values[c.key] = c.next
		}
		s.want("a", values["a"])
		s.want("b", values["b"])
		if _, listed := s.list(""); !maps.Equal(listed, values) {
			t.Fatalf("List yields %.60q, want %.60q", listed, values)
		}
	}
	// As an old value, nil means absent too.
	for _, want := range []bool{true, false} {
		if ok, err := s.CAS(s.ctx, "c", nil, fmt.Append(nil, want)); ok != want || err != nil {
			t.Errorf(`CAS("c", nil, "%v") = %v, %v, want %v`, want, ok, err, want)
		}
	}
}

// near returns values that differ slightly from value.
func near(value string) []string {
	all := []string{
		value + "x", value + "\x00", value + " ", value + "\n", " " + value, "\x00" + value,
		value[:len(value)-1], value[1:], strings.ToUpper(value), strings.ToLower(value),
		strings.TrimRight(value, " \x00\n"), strings.TrimSpace(value),
	}
	for _, i := range []int{0, len(value) / 2, len(value) - 1} {
		for _, bit := range []byte{0x01, 0x20, 0x80} {
			b := []byte(value)
			b[i] ^= bit
			all = append(all, string(b))
		}
	}
	return slices.DeleteFunc(all, func(v string) bool { return v == value || v == "" })
}

func testCompareBytes(t *testing.T, su suite) {
	s := su.new(t)
	for i, value := range []string{"Value", "ab ", "a\x00", "\x00\x00", "\xff\xfe", "é", "e\u0301", "1", "01", "1.0",
		"\n", bytesOf(64), bytesOf(4000)} {
		key := fmt.Sprintf("n/%d", i)
		s.cas(key, "", value)
		for _, old := range near(value) {
			calls.Refused(t, s, key, old, "changed")
		}
		s.want(key, value)
	}
}

func testValues(t *testing.T, su suite) {
	s := su.new(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	values := []string{
		string(all), "\x00", "\x00\x01\x02", "\xff", "\xc3\x28", "a\x00b", "it's", `"`, `\`, `\x00`, "'; --", "%s%d", "{}",
		"null", "NULL", "\r\n", " ", "  a  ",
		bytesOf(1), bytesOf(127), bytesOf(128), bytesOf(255), bytesOf(256), bytesOf(257), bytesOf(1024), bytesOf(4096 - 1),
		bytesOf(4096),
		strings.Repeat("\x00", 4096), strings.Repeat("\xff", 4096),
	}
	last := ""
	for i, value := range values {
		key := fmt.Sprintf("v/%02d", i)
		s.cas(key, "", value)
		s.want(key, value)
		s.cas("one", last, value)
		s.want("one", value)
		last = value
	}
	_, got := s.list("v/")
	for i, value := range values {
		if key := fmt.Sprintf("v/%02d", i); got[key] != value {
			t.Errorf("List yields %q with %.60q, want %.60q", key, got[key], value)
		}
	}
}

func testBadValues(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "1")
	for _, value := range [][]byte{nil, {}, make([]byte, 4096+1), make([]byte, 1<<20)} {
		for key, old := range map[string][]byte{"a": []byte("1"), "b": nil} {
			ok, err := s.CAS(s.ctx, key, old, value)
			if ok {
				t.Errorf("CAS to a value of %d bytes = true, want an error", len(value))
			}
			calls.Error(t, fmt.Sprintf("CAS to a value of %d bytes", len(value)), err, grant.ErrNotSent)
		}
	}
	s.want("a", "1")
	s.want("b", "")
}

// scribble overwrites a slice and what lies behind it, as its owner may.
func scribble(b []byte) {
	for i := range b[:cap(b)] {
		b[:cap(b)][i] = '!'
	}
}

func testArguments(t *testing.T, su suite) {
	s := su.new(t)
	for _, c := range []struct{ old, next, then string }{{"", "first", "first"}, {"first", "second", "second"},
		{"first", "refused", "second"}} {
		was := "<" + c.old + "|" + c.next + ">"
		args := []byte(was)
		old, next := args[1:1+len(c.old)], args[2+len(c.old):len(args)-1]
		ok, err := s.CAS(s.ctx, "a", old, next)
		if ok != (c.then == c.next) || err != nil || string(args) != was {
			t.Fatalf("CAS(%q, %q) = %v, %v, and its arguments, or what lies behind them, are now %q", c.old, c.next, ok, err,
				args)
		}
		scribble(args)
		s.want("a", c.then)
		if _, values := s.list(""); values["a"] != c.then {
			t.Fatalf("List yields %q, want %q: what the caller does to its slice after CAS must not be seen", values["a"],
				c.then)
		}
	}
}

func testResults(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "first")
	s.cas("b", "", "second")
	mine := must.Get(s.Get(s.ctx, "a"))(t)
	scribble(mine)
	s.want("a", "first")
	s.want("b", "second")
	s.cas("a", "first", "third")
	if string(mine) != "!!!!!" {
		t.Errorf("a value that Get returned has become %q: it belongs to the caller, and nothing else may change it", mine)
	}
	for range 2 { // yield changes its values
		must.Do(t, s.List(s.ctx, "", func(key string, value []byte) bool {
			if want := map[string]string{"a": "third", "b": "second"}[key]; string(value) != want {
				t.Errorf("List yields %q with %q, want %q", key, value, want)
			}
			scribble(value)
			return true
		}))
	}
	s.want("a", "third")
	s.want("b", "second")
}
