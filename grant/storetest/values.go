package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func testCreate(t *testing.T, su suite) {
	s := su.new(t)
	s.want("a", "")
	s.wantEmpty()
	s.cas("a", "", "1", true)
	s.want("a", "1")
	s.want("b", "")
	s.cas("a", "", "2", false)
	s.want("a", "1")
	s.cas("a", "", "1", false) // not even with the value that is there
	s.want("a", "1")
	// An empty old value means absent.
	if ok, err := s.CAS(s.ctx, "b", []byte{}, []byte("1")); !ok || err != nil {
		t.Errorf(`CAS("b", []byte{}, "1") = %v, %v, want true: an old value of no bytes means absent`, ok, err)
	}
	if ok, err := s.CAS(s.ctx, "b", []byte{}, []byte("2")); ok || err != nil {
		t.Errorf(`CAS("b", []byte{}, "2") = %v, %v, want false: the key has a value`, ok, err)
	}
	s.want("b", "1")
}

func testReplace(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "0", true)
	s.cas("b", "", "0", true)
	for i := range 20 {
		s.cas("a", fmt.Sprint(i), fmt.Sprint(i+1), true)
		s.want("a", fmt.Sprint(i+1))
		s.want("b", "0")
	}
	s.cas("a", "20", "20", true) // by itself
	s.want("a", "20")
	s.cas("a", "20", "1", true) // by what was there before: only the value counts
	s.cas("a", "1", "2", true)
	for _, n := range []int{4096, 1, 300, 4096, 2} { // longer and shorter
		now, err := s.Get(s.ctx, "a")
		if err != nil {
			t.Fatalf("Get = %v", err)
		}
		s.cas("a", string(now), bytesOf(n), true)
		s.want("a", bytesOf(n))
	}
}

func testRefused(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "x", "1", false) // absent
	s.want("a", "")
	s.wantEmpty()
	s.cas("a", "", "1", true)
	s.cas("a", "2", "3", false)
	s.want("a", "1")
	s.cas("a", "1", "2", true)
	s.cas("a", "1", "3", false) // the previous value
	s.want("a", "2")
	// A refused CAS is not applied later either.
	s.cas("a", "2", "1", true)
	s.want("a", "1")
	// An old value that no key can have.
	if ok, err := s.CAS(s.ctx, "a", bytes.Repeat([]byte("1"), 4096+1), []byte("4")); ok {
		t.Errorf("CAS from a value of %d bytes = %v, %v, want it not applied", 4096+1, ok, err)
	}
	s.want("a", "1")
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
	for i, value := range []string{"Value", "ab ", "a\x00", "\x00\x00", "\xff\xfe", "é", "e\u0301", "1", "01", "1.0", "\n", bytesOf(64), bytesOf(4000)} {
		key := fmt.Sprintf("n/%d", i)
		s.cas(key, "", value, true)
		for _, old := range near(value) {
			s.cas(key, old, "changed", false)
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
		string(all), "\x00", "\x00\x01\x02", "\xff", "\xc3\x28", "a\x00b", "it's", `"`, `\`, `\x00`, "'; --", "%s%d", "{}", "null", "NULL", "\r\n", " ", "  a  ",
		bytesOf(1), bytesOf(127), bytesOf(128), bytesOf(255), bytesOf(256), bytesOf(257), bytesOf(1024), bytesOf(4096 - 1), bytesOf(4096),
		strings.Repeat("\x00", 4096), strings.Repeat("\xff", 4096),
	}
	last := ""
	for i, value := range values {
		key := fmt.Sprintf("v/%02d", i)
		s.cas(key, "", value, true)
		s.want(key, value)
		s.cas("one", last, value, true)
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
	s.cas("a", "", "1", true)
	for _, value := range [][]byte{nil, {}, make([]byte, 4096+1), make([]byte, 1<<20)} {
		for key, old := range map[string][]byte{"a": []byte("1"), "b": nil} {
			ok, err := s.CAS(s.ctx, key, old, value)
			if ok {
				t.Errorf("CAS to a value of %d bytes = true, want an error", len(value))
			}
			notSent(t, fmt.Sprintf("CAS to a value of %d bytes", len(value)), err, nil)
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
	for _, c := range []struct{ old, next, then string }{{"", "first", "first"}, {"first", "second", "second"}, {"first", "refused", "second"}} {
		was := "<" + c.old + "|" + c.next + ">"
		args := []byte(was)
		old, next := args[1:1+len(c.old)], args[2+len(c.old):len(args)-1]
		ok, err := s.CAS(s.ctx, "a", old, next)
		if ok != (c.then == c.next) || err != nil || string(args) != was {
			t.Fatalf("CAS(%q, %q) = %v, %v, and its arguments, or what lies behind them, are now %q", c.old, c.next, ok, err, args)
		}
		scribble(args)
		s.want("a", c.then)
		if _, values := s.list(""); values["a"] != c.then {
			t.Fatalf("List yields %q, want %q: what the caller does to its slice after CAS must not be seen", values["a"], c.then)
		}
	}
}

func testResults(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "first", true)
	s.cas("b", "", "second", true)
	mine, err := s.Get(s.ctx, "a")
	if err != nil {
		t.Fatalf("Get = %v", err)
	}
	scribble(mine)
	s.want("a", "first")
	s.want("b", "second")
	s.cas("a", "first", "third", true)
	if string(mine) != "!!!!!" {
		t.Errorf("a value that Get returned has become %q: it belongs to the caller, and nothing else may change it", mine)
	}
	for range 2 { // yield changes its values
		err = s.List(s.ctx, "", func(key string, value []byte) bool {
			if want := map[string]string{"a": "third", "b": "second"}[key]; string(value) != want {
				t.Errorf("List yields %q with %q, want %q", key, value, want)
			}
			scribble(value)
			return true
		})
		if err != nil {
			t.Fatalf("List = %v", err)
		}
	}
	s.want("a", "third")
	s.want("b", "second")
}
