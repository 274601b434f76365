package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Sessions are cookies that stand for principals, so that a browser sends a
// token once. A cookie says who it is of and until when, and is signed: the
// server keeps only those that were ended. It ends with its principal: see
// Principal. It must be made by NewSessions, and is safe for use by many
// goroutines at once.
//
// What a browser sends with a cookie needs Origins.Check as well.
type Sessions struct {
	life time.Duration

	mu    sync.Mutex // guards what follows
	key   [sha256.Size]byte
	ended map[[sha256.Size]byte]time.Time
}

// minKey is the least length of a key for signatures.
const minKey = 32

// NewSessions makes Sessions of a length. A nil key means a random one, and so
// that sessions end with the process; servers that share a key know each
// other's sessions.
func NewSessions(key []byte, life time.Duration) (*Sessions, error) {
	s := &Sessions{life: life}
	if life < time.Second {
		return nil, fmt.Errorf("a session of %v: the least is a second", life)
	}
	if key == nil {
		_, _ = rand.Read(s.key[:]) // never fails
		return s, nil
	}
	if len(key) < minKey {
		return nil, fmt.Errorf("a key of %d bytes for sessions: the least are %d random ones", len(key), minKey)
	}
	// Not the key itself, so that it can serve for something else too.
	m := hmac.New(sha256.New, key)
	m.Write([]byte("firn session v1"))
	m.Sum(s.key[:0])
	return s, nil
}

// A cookie's value is base64url of
//
//	| until: 8 bytes, Unix seconds | random: 8 bytes | identity: 16 bytes | name | HMAC of all before: 32 bytes |
//
// and the identity is the beginning of the token's hash, or of that of the
// certificate's name. It tells a principal from a later one of the same name.
// The random bytes tell its sessions apart, so that each ends for itself.
const (
	untilLen    = 8
	randomLen   = 8
	identityLen = 16
	leastValue  = untilLen + randomLen + identityLen + 1 + sha256.Size
	mostValue   = leastValue - 1 + 128
)

// The cookies' names. A browser takes one with __Host- over TLS only and from
// this host only, so that no other server on a domain can set it.
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

// Cookie begins a session of a principal that has shown its token. secure says
// whether the connection has TLS. The session ends when the principal expires,
// if not before.
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

// maxEnded is how many sessions are remembered that were ended before their
// time. A principal would have to sign in and out as often within the life of a
// session.
const maxEnded = 100_000

// End ends the sessions that a request has the cookies of, wherever else these
// are, and returns a cookie that removes them from the browser. Other sessions
// of the principal remain: to end these, take its token out of the file.
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
		// It has signed out, which must be so: all others have to sign in again.
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

// Principal returns whose session a request is of. The principal is looked up
// in the set: one that was taken out, has expired or has another token has no
// session any more, and its role is what the set says now.
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

// sign covers whether the session is of TLS, so that what was seen without it
// is of no use with it.
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

// identity tells a principal from another one of its name.
func (p *Principal) identity() (id [identityLen]byte) {
	sum := p.sum
	if p.subject != (subject{}) {
		sum = sha256.Sum256([]byte(p.subject.kind + " " + p.subject.name))
	}
	copy(id[:], sum[:])
	return id
}
