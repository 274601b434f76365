package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// sessionSet is a set of billing, which ends in 30 minutes, and ops.
func sessionSet(t *testing.T, role, hash string) *Set {
	t.Helper()
	s, err := Parse([]byte("tokens:\n- {name: billing, role: "+role+", sha256: "+hash+", expires: 2026-11-21T00:30:00Z}\n- {name: ops, role: admin, sha256: "+hashA+"}"), "f")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func requestWith(cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

func TestSessions(t *testing.T) {
	token, hash := NewToken()
	_, otherHash := NewToken()
	set := sessionSet(t, "read", hash)
	billing, _ := set.Token(token, now)
	s := NewSessions(time.Hour)
	for _, secure := range []bool{false, true} {
		c := s.Cookie(billing, secure, now)
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.Path != "/" || c.Domain != "" ||
			c.MaxAge != 30*60 || strings.HasPrefix(c.Name, "__Host-") != secure {
			t.Errorf("the cookie is %v", c)
		}
		if err := c.Valid(); err != nil {
			t.Error(err)
		}
		if strings.Contains(c.String(), token) {
			t.Error("the cookie has the token")
		}
		for what, test := range map[string]struct {
			r      *http.Request
			set    *Set
			secure bool
			after  time.Duration
			want   bool
		}{
			"as it is":                 {requestWith(c), set, secure, 0, true},
			"after another one":        {requestWith(&http.Cookie{Name: c.Name, Value: "x"}, c), set, secure, 0, true},
			"without":                  {requestWith(), set, secure, 0, false},
			"just before the end":      {requestWith(c), set, secure, 30*time.Minute - time.Second, true},
			"at the end":               {requestWith(c), set, secure, 30 * time.Minute, false},
			"over the other transport": {requestWith(c), set, !secure, 0, false},
			"renamed":                  {requestWith(&http.Cookie{Name: cookieName(!secure), Value: c.Value}), set, !secure, 0, false},
			"another token":            {requestWith(c), sessionSet(t, "read", otherHash), secure, 0, false},
			"taken out":                {requestWith(c), new(Set), secure, 0, false},
		} {
			p, ok := s.Principal(test.r, test.set, test.secure, now.Add(test.after))
			if ok != test.want || ok && p.Name != "billing" {
				t.Errorf("secure %t, %s: %t, want %t", secure, what, ok, test.want)
			}
		}
		// The role is that of now.
		if p, ok := s.Principal(requestWith(c), sessionSet(t, "admin", hash), secure, now); !ok || p.Role != Admin {
			t.Error("the role is not the one that the set has")
		}
	}
	ops := set.all[1]
	// Without an end of its own, a session has the length of the Sessions.
	if c := s.Cookie(ops, true, now); c.MaxAge != 3600 {
		t.Errorf("a session has %d s", c.MaxAge)
	}
	if _, ok := s.Principal(requestWith(s.Cookie(ops, true, now)), set, true, now.Add(time.Hour)); ok {
		t.Error("a session does not end")
	}
}

// TestSessionEnds: a session that was ended is of no use to anyone who has
// copied its cookie, and the other sessions of the principal continue.
func TestSessionEnds(t *testing.T) {
	token, hash := NewToken()
	set := sessionSet(t, "read", hash)
	billing, _ := set.Token(token, now)
	s := NewSessions(time.Hour)
	stolen, other := s.Cookie(billing, true, now), s.Cookie(billing, true, now)
	if stolen.Value == other.Value {
		t.Fatal("two sessions have the same cookie")
	}
	removal := s.End(requestWith(stolen), true)
	if removal.MaxAge >= 0 || removal.Name != stolen.Name {
		t.Errorf("the browser keeps the cookie: %v", removal)
	}
	if _, ok := s.Principal(requestWith(stolen), set, true, now); ok {
		t.Error("the cookie of a session that was ended is valid")
	}
	if _, ok := s.Principal(requestWith(other), set, true, now); !ok {
		t.Error("another session of the principal has ended, too")
	}
	// If too many are open for one more, all others end.
	for i := 0; len(s.open) < maxSessions; i++ {
		s.open[sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))] = session{until: now.Add(time.Hour)}
	}
	last := s.Cookie(billing, true, now)
	if _, ok := s.Principal(requestWith(last), set, true, now); !ok || len(s.open) != 1 {
		t.Errorf("the last of too many sessions is valid: %t, of %d", ok, len(s.open))
	}
}
