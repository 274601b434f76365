package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Sessions are random cookies that stand for principals, so that a browser sends
// its token once. A session also ends with its principal, and with the process.
// Sessions must be made by NewSessions, and are safe for concurrent use.
//
// Requests that a cookie authenticates need http.CrossOriginProtection as well.
type Sessions struct {
	life time.Duration

	mu   sync.Mutex // guards open
	open map[[sha256.Size]byte]session
}

// A session is stored under the hash of its cookie.
type session struct {
	token [sha256.Size]byte // the hash of the principal's token
	until time.Time
}

// NewSessions makes Sessions that last for life.
func NewSessions(life time.Duration) *Sessions {
	return &Sessions{life: life, open: make(map[[sha256.Size]byte]session)}
}

// The names of the cookies. A browser accepts a __Host- cookie only over TLS
// and only from this host, so that no other server of a domain can set it.
const (
	secureName = "__Host-firn"
	plainName  = "firn"
)

func cookieName(secure bool) string {
	if secure {
		return secureName
	}
	return plainName
}

// hashOf returns the key of a session. It includes whether the session is one
// over TLS, so that a cookie that was sent in plain text cannot be used over TLS.
func hashOf(value string, secure bool) [sha256.Size]byte {
	return sha256.Sum256([]byte(cookieName(secure) + "\x00" + value))
}

// maxSessions is how many sessions may be open. For more, the principal that has
// the most loses the older half of its own.
const maxSessions = 100_000

// Cookie begins a session for a principal that has presented its token. secure
// reports whether the connection uses TLS. The session ends no later than the
// principal expires.
func (s *Sessions) Cookie(p *Principal, secure bool, now time.Time) *http.Cookie {
	until := now.Add(s.life)
	if !p.expires.IsZero() && p.expires.Before(until) {
		until = p.expires
	}
	value := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSessions {
		s.makeRoom(now)
	}
	s.open[hashOf(value, secure)] = session{p.sum, until}
	// A MaxAge of 0 would mean no limit.
	return newCookie(value, max(1, int(until.Sub(now)/time.Second)), secure)
}

// makeRoom ends sessions: those that have expired, and some if that is not
// enough. The caller holds mu.
func (s *Sessions) makeRoom(now time.Time) {
	maps.DeleteFunc(s.open, func(_ [sha256.Size]byte, old session) bool { return !now.Before(old.until) })
	if len(s.open) < maxSessions {
		return
	}
	ends := make(map[[sha256.Size]byte][]time.Time) // by token
	var most [sha256.Size]byte
	for _, is := range s.open {
		if ends[is.token] = append(ends[is.token], is.until); len(ends[is.token]) > len(ends[most]) {
			most = is.token
		}
	}
	slices.SortFunc(ends[most], time.Time.Compare)
	until := ends[most][len(ends[most])/2]
	maps.DeleteFunc(s.open, func(_ [sha256.Size]byte, old session) bool {
		return old.token == most && !old.until.After(until)
	})
}

// End ends the sessions whose cookies the request carries, and copies of these
// cookies become invalid too. It returns a cookie that removes them from the
// browser. Other sessions of the principal continue: to end them, remove its
// token from the file.
func (s *Sessions) End(r *http.Request, secure bool) *http.Cookie {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName(secure)) {
		delete(s.open, hashOf(c.Value, secure))
	}
	return newCookie("", -1, secure)
}

func newCookie(value string, age int, secure bool) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(secure), Value: value, Path: "/", MaxAge: age,
		Secure: secure, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// Principal returns the principal of the request's session, as it is in the set
// now. A principal that was removed, has expired or has another token has no
// session, and its role is the current one.
func (s *Sessions) Principal(r *http.Request, set *Set, secure bool, now time.Time) (*Principal, bool) {
	for _, c := range r.CookiesNamed(cookieName(secure)) {
		if p, ok := s.principal(c.Value, set, secure, now); ok {
			return p, true
		}
	}
	return nil, false
}

func (s *Sessions) principal(value string, set *Set, secure bool, now time.Time) (*Principal, bool) {
	s.mu.Lock()
	is, ok := s.open[hashOf(value, secure)]
	s.mu.Unlock()
	if !ok || !now.Before(is.until) {
		return nil, false
	}
	p, ok := unexpired(set.byToken[is.token], now)
	if ok {
		p.markUsed()
	}
	return p, ok
}
