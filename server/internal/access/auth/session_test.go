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

// sessionSet is a set of billing, which ends in 30 minutes, and ops, by a
// certificate.
func sessionSet(t *testing.T, role, hash string) *Set {
	t.Helper()
	s, err := Parse([]byte("tokens:\n- {name: billing, role: "+role+", sha256: "+hash+", expires: 2026-11-21T00:30:00Z}\n- {name: ops, role: admin, cn: ops.example}"), "f")
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
		// Changing any character invalidates it.
		for i := range c.Value {
			for _, by := range []byte("Aq_") {
				if c.Value[i] == by {
					continue
				}
				forged := c.Value[:i] + string(by) + c.Value[i+1:]
				if _, ok := s.Principal(requestWith(&http.Cookie{Name: c.Name, Value: forged}), set, secure, now); ok {
					t.Fatalf("character %d may be changed", i)
				}
			}
		}
	}
	ops := set.all[1]
	if p, ok := s.Principal(requestWith(s.Cookie(ops, true, now)), set, true, now); !ok || p.Name != "ops" {
		t.Error("a principal by certificate has no session")
	}
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
	removal := s.End(requestWith(stolen), set, true, now)
	if removal.MaxAge >= 0 || removal.Name != stolen.Name {
		t.Errorf("the browser keeps the cookie: %v", removal)
	}
	if _, ok := s.Principal(requestWith(stolen), set, true, now); ok {
		t.Error("the cookie of a session that was ended is valid")
	}
	if _, ok := s.Principal(requestWith(other), set, true, now); !ok {
		t.Error("another session of the principal has ended, too")
	}
	// A forged cookie does not count.
	s.End(requestWith(&http.Cookie{Name: stolen.Name, Value: "forged"}), set, true, now)
	if len(s.ended) != 1 {
		t.Errorf("%d ended sessions are remembered, want 1", len(s.ended))
	}
	// If too many have been ended to remember one more, all sessions end.
	for i := 0; len(s.ended) < maxEnded; i++ {
		s.ended[sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))] = now.Add(time.Hour)
	}
	s.End(requestWith(other), set, true, now)
	for _, c := range []*http.Cookie{stolen, other} {
		if _, ok := s.Principal(requestWith(c), set, true, now); ok {
			t.Error("a cookie is valid, though its session was ended")
		}
	}
	if len(s.ended) > maxEnded {
		t.Errorf("%d ended sessions are remembered, want at most %d", len(s.ended), maxEnded)
	}
}

// TestSessionKeys: no other server accepts a session, as each has its own key.
func TestSessionKeys(t *testing.T) {
	token, hash := NewToken()
	set := sessionSet(t, "read", hash)
	p, _ := set.Token(token, now)
	c := NewSessions(time.Hour).Cookie(p, true, now)
	if _, ok := NewSessions(time.Hour).Principal(requestWith(c), set, true, now); ok {
		t.Error("a session of another server is accepted")
	}
}

func FuzzSession(f *testing.F) {
	s := NewSessions(time.Hour)
	set := &Set{all: []*Principal{{Name: "a", Role: Admin}}}
	good := s.Cookie(set.all[0], false, now).Value
	f.Add(good[1:])
	f.Fuzz(func(t *testing.T, value string) {
		if _, ok := s.principal(value, set, false, now); ok && value != good {
			t.Errorf("%q is a session", value)
		}
	})
}
