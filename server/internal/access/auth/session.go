package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Sessions are cookies that stand for principals, so that a browser sends its
// token once. A cookie names its principal and its end, and is signed: the
// server stores only the sessions that were ended early. A session also ends
// with its principal, and with the process. Sessions must be made by
// NewSessions, and are safe for concurrent use.
//
// Requests that a cookie authenticates need http.CrossOriginProtection as well.
type Sessions struct {
	life time.Duration

	mu    sync.Mutex // guards the fields below
	key   [sha256.Size]byte
	ended map[[sha256.Size]byte]time.Time
}

// NewSessions makes Sessions that last for life, signed with a random key.
func NewSessions(life time.Duration) *Sessions {
	s := &Sessions{life: life}
	_, _ = rand.Read(s.key[:]) // never fails
	return s
}

// The value of a cookie is base64url of
//
//	| until: 8 bytes, Unix seconds | random: 8 bytes | identity: 16 bytes |
//	| name | HMAC of all of this: 32 bytes |
//
// The identity is the beginning of the hash of the token or of the
// certificate's name. It distinguishes a principal from a later one of the same
// name. The random bytes distinguish the sessions of a principal, so that each
// can be ended alone.
const (
	untilLen    = 8
	randomLen   = 8
	identityLen = 16
	leastValue  = untilLen + randomLen + identityLen + 1 + sha256.Size
	mostValue   = leastValue - 1 + 128
)

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

// Cookie begins a session for a principal that has presented its token. secure
// reports whether the connection uses TLS. The session ends no later than the
// principal expires.
func (s *Sessions) Cookie(p *Principal, secure bool, now time.Time) *http.Cookie {
	until := now.Add(s.life)
	if p.Ends() && p.expires.Before(until) {
		until = p.expires
	}
	id := p.identity()
	b := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	b = append(b, make([]byte, randomLen)...)
	_, _ = rand.Read(b[untilLen:]) // never fails
	b = append(b, id[:]...)
	b = append(b, p.Name...)
	sum := s.sign(b, secure)
	b = append(b, sum[:]...)
	// A MaxAge of 0 would mean no limit.
	age := max(1, int(until.Sub(now)/time.Second))
	return newCookie(base64.RawURLEncoding.EncodeToString(b), age, secure)
}

// maxEnded is how many sessions are remembered that were ended early. To reach
// it, a principal must sign in and out as often within the life of one session.
const maxEnded = 100_000

// End ends the sessions whose cookies the request carries, and copies of these
// cookies become invalid too. It returns a cookie that removes them from the
// browser. Other sessions of the principal continue: to end them, remove its
// token from the file.
func (s *Sessions) End(r *http.Request, set *Set, secure bool, now time.Time) *http.Cookie {
	for _, c := range r.CookiesNamed(cookieName(secure)) {
		if _, ok := s.principal(c.Value, set, secure, now); ok {
			s.end(sha256.Sum256([]byte(c.Value)), now)
		}
	}
	return newCookie("", -1, secure)
}

func (s *Sessions) end(session [sha256.Size]byte, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = make(map[[sha256.Size]byte]time.Time)
	}
	if len(s.ended) >= maxEnded {
		maps.DeleteFunc(s.ended, func(_ [sha256.Size]byte, until time.Time) bool { return !now.Before(until) })
	}
	if len(s.ended) >= maxEnded {
		// The list is full and this sign-out must hold: end all sessions.
		_, _ = rand.Read(s.key[:])
		clear(s.ended)
		return
	}
	s.ended[session] = now.Add(s.life)
}

func (s *Sessions) isEnded(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ended := s.ended[sha256.Sum256([]byte(value))]
	return ended
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
	if len(value) > base64.RawURLEncoding.EncodedLen(mostValue) {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil || len(b) < leastValue {
		return nil, false
	}
	b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if want := s.sign(b, secure); !hmac.Equal(sum, want[:]) {
		return nil, false
	}
	if until := int64(binary.BigEndian.Uint64(b)); now.Unix() >= until {
		return nil, false
	}
	if s.isEnded(value) {
		return nil, false
	}
	rest := b[untilLen+randomLen:]
	id, name := [identityLen]byte(rest), string(rest[identityLen:])
	for _, p := range set.all {
		if p.Name == name && p.identity() == id {
			p.note()
			return alive(p, now)
		}
	}
	return nil, false
}

// sign includes whether the session is one over TLS, so that a cookie that was
// sent in plain text cannot be used over TLS.
func (s *Sessions) sign(b []byte, secure bool) (sum [sha256.Size]byte) {
	s.mu.Lock()
	key := s.key
	s.mu.Unlock()
	m := hmac.New(sha256.New, key[:])
	m.Write([]byte(cookieName(secure) + "\x00"))
	m.Write(b)
	m.Sum(sum[:0])
	return sum
}

// identity distinguishes the principal from others of its name.
func (p *Principal) identity() (id [identityLen]byte) {
	sum := p.sum
	if p.subject != (subject{}) {
		sum = sha256.Sum256([]byte(p.subject.kind + " " + p.subject.name))
	}
	copy(id[:], sum[:])
	return id
}
