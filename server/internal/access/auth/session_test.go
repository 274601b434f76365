package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// sessionSet is a set of billing, which ends in 30 minutes, and ops.
func sessionSet(t *testing.T, role, hash string) *Set {
	t.Helper()
	return setOf(t, "{name: billing, role: "+role+", sha256: "+hash+", expires: 2026-11-21T00:30:00Z}",
		"{name: ops, role: admin, sha256: "+hashA+"}")
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
		must.Do(t, c.Valid())
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
}

// TestTooManySessions: if too many are open for one more, expired ones end, and
// then the older half of those of the principal that has the most, also if it
// is the one that signs in.
func TestTooManySessions(t *testing.T) {
	token, hash := NewToken()
	set := sessionSet(t, "generate", hash)
	billing, _ := set.Token(token, now)
	ops := set.all[1]
	s := NewSessions(time.Hour)
	flood := func(at time.Time) {
		for i := range maxSessions - len(s.open) {
			s.open[sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano()+int64(i))))] = session{billing.sum, at.Add(time.Hour + time.Duration(i))}
		}
	}
	admin := s.Cookie(ops, true, now)
	flood(now.Add(-2 * time.Hour))
	want := func(what string, open int, cookies ...*http.Cookie) {
		t.Helper()
		for _, c := range append(cookies, admin) {
			if _, ok := s.Principal(requestWith(c), set, true, now); !ok {
				t.Errorf("%s: a session has ended", what)
			}
		}
		if len(s.open) != open {
			t.Errorf("%s: %d sessions are open, want %d", what, len(s.open), open)
		}
	}
	want("expired", 2, s.Cookie(billing, true, now))
	flood(now)
	// One that signs in last has the latest end.
	want("billing has the most", maxSessions/2+1, s.Cookie(billing, true, now.Add(time.Minute)))
	flood(now.Add(time.Minute))
	want("and an administrator signs in", maxSessions/2+1, s.Cookie(ops, true, now))
}
