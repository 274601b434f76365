// Package auth decides what a client may do: tokens and certificates, with
// roles.
//
// A token is "firn_" followed by 43 random base62 digits, which are 256 random
// bits. Files hold only its SHA-256: it identifies the token but cannot be used
// in its place. Because a token is random, a fast hash is enough.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/internal/access/readfile"
)

// prefix begins every token, so that secret scanners find tokens that were
// published by mistake.
const prefix = "firn_"

// digits are the base62 digits that all of Firn uses.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// tokenLen is the number of digits for 256 bits.
const tokenLen = 43

// NewToken returns a token and its hash, which goes into a token file.
func NewToken() (token, hash string) {
	text := make([]byte, tokenLen)
	for i := range text {
		digit, _ := rand.Int(rand.Reader, big.NewInt(int64(len(digits)))) // never fails
		text[i] = digits[digit.Int64()]
	}
	token = prefix + string(text)
	return token, Hash(token)
}

// Hash returns the SHA-256 of a token in hexadecimal, as a token file has it.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// A Principal is an authenticated client. It is immutable.
type Principal struct {
	Name       string
	Role       Role
	sequencers []string // patterns; empty means all
	noCreate   bool     // it may not create sequencers by using them
	limits     Quota
	account    *account              // nil without an entry of the token file
	shared     map[string]*Principal // what all clients together may take, by sequencer
	sum        [sha256.Size]byte
	subject    subject // of a certificate, if there is no token
	expires    time.Time
	used       *atomic.Bool // set when a token that is being replaced is used; nil for other tokens
}

// A subject is a name in a certificate. The zero value means no name.
type subject struct {
	kind string // uri, dns or cn, as in the token file
	name string
}

// A Set is a set of principals. It is immutable, and safe for concurrent use.
type Set struct {
	all       []*Principal // one per hash or certificate
	shared    map[string]*Principal
	entries   int
	byToken   map[[sha256.Size]byte]*Principal
	bySubject map[subject]*Principal
	anyone    bool // with a verified certificate may take IDs
}

// anyCertificate allows every client with a verified certificate to take IDs,
// and nothing more.
var anyCertificate = &Set{anyone: true}

// Token returns the principal of a token. Looking it up by hash leaks nothing
// through timing: a client cannot search for a hash digit by digit.
func (s *Set) Token(token string, now time.Time) (*Principal, bool) {
	return unexpired(s.byToken[sha256.Sum256([]byte(token))], now)
}

// Replaced returns the names of the entries whose old token was used since the
// last call.
func (s *Set) Replaced() (names []string) {
	for _, p := range s.all {
		if p.used != nil && p.used.Swap(false) {
			names = append(names, p.Name)
		}
	}
	return names
}

// markUsed records that a token that is being replaced was used.
func (p *Principal) markUsed() {
	if p.used != nil && !p.used.Load() {
		p.used.Store(true)
	}
}

// Certificate returns the principal of a certificate, which must have been
// verified. Each name is compared only with entries of its kind: an authority
// that controls URIs may let clients choose their common name.
func (s *Set) Certificate(c *x509.Certificate, now time.Time) (*Principal, bool) {
	if s.anyone {
		return certificateAlone(c), true
	}
	for _, of := range subjectsOf(c) {
		if p := s.bySubject[of]; p != nil {
			return unexpired(p, now)
		}
	}
	return nil, false
}

// subjectsOf returns the names in a certificate, the most specific kind first.
func subjectsOf(c *x509.Certificate) (all []subject) {
	for _, u := range c.URIs {
		all = append(all, subject{"uri", u.String()})
	}
	for _, name := range c.DNSNames {
		all = append(all, subject{"dns", name})
	}
	if c.Subject.CommonName != "" {
		all = append(all, subject{"cn", c.Subject.CommonName})
	}
	return all
}

// certificateAlone returns the principal of a certificate if there is no token
// file.
func certificateAlone(c *x509.Certificate) *Principal {
	p := &Principal{Name: "certificate", Role: Generate}
	if all := subjectsOf(c); len(all) > 0 {
		p.Name, p.subject = all[0].name, all[0]
	}
	return p
}

// unexpired returns a principal that is not nil and has not expired.
func unexpired(p *Principal, now time.Time) (*Principal, bool) {
	if p == nil || !p.expires.IsZero() && !now.Before(p.expires) {
		return nil, false
	}
	return p, true
}

// Len returns the number of entries.
func (s *Set) Len() int { return s.entries }

// Parse reads a token file:
//
//	---
//	sequencers:
//	  orders: {rate: 50k/s}                    # of all clients together: see Quota
//	tokens:
//	  - name: billing
//	    sha256: 5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5
//	    role: generate
//	    sequencers: ["orders", "invoices-*"]   # default: all
//	    expires: 2027-01-01T00:00:00Z          # default: never
//	    create: false                          # by taking IDs of unknown names; default: true
//	    rate: 50k/s                            # and burst, request-rate and max: see Quota
//	  - name: web
//	    sha256: [2c26…, fcde…]                 # old and new token, during rotation
//	    role: generate
//	  - name: ops
//	    dns: ops.example.com                   # certificate name: uri, dns or cn
//	    role: admin
//	...
//
// The first and the last line prove that the file is complete; without the
// first one, nothing does (see config.CheckWhole). The list of a file that
// allows no client must be written as tokens: []. An empty file is an error,
// because it may have been cut off. Parse reports all faults at once, with
// their lines in the named file.
func Parse(data []byte, file string) (*Set, error) {
	doc, err := read(data, file)
	if err != nil {
		return nil, err
	}
	s := &Set{entries: len(doc.entries), byToken: make(map[[sha256.Size]byte]*Principal),
		bySubject: make(map[subject]*Principal), shared: make(map[string]*Principal)}
	for name, l := range doc.sequencers {
		s.shared[name] = &Principal{Name: "all clients of " + name + " together", limits: l, account: new(account)}
	}
	for _, e := range doc.entries {
		all := e.principals(doc.roles[e.Role])
		s.all = append(s.all, all...)
		for _, p := range all {
			p.shared = s.shared
			if p.subject == (subject{}) {
				s.byToken[p.sum] = p
			} else {
				s.bySubject[p.subject] = p
			}
		}
	}
	return s, nil
}

// Open reads a token file, which can change. It passes warn a sentence if the
// file's mode lets other users read or change it.
func Open(path string, warn func(string)) (*readfile.Content[*Set], error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var accounts map[accountKey]*account
	c, err := readfile.Open(func(texts [][]byte) (*Set, error) {
		s, err := Parse(texts[0], path)
		if err == nil {
			accounts = s.keep(accounts)
		}
		return s, err
	}, path)
	if err != nil {
		return nil, err
	}
	if text := modeFault(path, info.Mode()); text != "" && warn != nil {
		warn(text)
	}
	return c, nil
}

// OpenToken reads a file with the token by which this program authenticates
// itself, which can change.
func OpenToken(path string) (*readfile.Content[string], error) {
	return readfile.Open(func(texts [][]byte) (string, error) {
		token := strings.TrimSpace(string(texts[0]))
		if token == "" {
			return "", fmt.Errorf("%s: the file is empty", path)
		}
		return token, nil
	}, path)
}

// modeFault says what is wrong with the mode of a token file, or returns "". A
// readable file reveals no token, as hashes cannot be reversed, but it shows
// what each client may do. Windows has no such modes.
func modeFault(path string, mode fs.FileMode) string {
	switch mode = mode.Perm(); {
	case runtime.GOOS == "windows":
	case mode&0o020 != 0:
		return fmt.Sprintf("%s is writable by other users (mode %04o): they can grant themselves access; run chmod go-w",
			path, mode)
	case mode&0o004 != 0:
		return fmt.Sprintf("%s is readable by other users (mode %04o): it shows what each client may do, though no token; "+
			"run chmod 640", path, mode)
	}
	return ""
}
