package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"testing"
	"time"
)

// TestWho: a client that shows a token is known by it or not at all, whatever
// its certificate says.
func TestWho(t *testing.T) {
	token, hash := NewToken()
	set := setOf(t, "{name: a, role: generate, sha256: "+hash+"}", "{name: b, role: admin, cn: ops}")
	cert := &x509.Certificate{Subject: pkix.Name{CommonName: "ops"}, NotAfter: time.Now().Add(time.Hour)}
	guard := NewGuard(func() *Set { return set }, nil)
	verified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
	shown := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	old := &x509.Certificate{Subject: cert.Subject, NotAfter: time.Now().Add(-time.Hour)}
	expired := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{old}, VerifiedChains: [][]*x509.Certificate{{old}}}
	for _, test := range []struct {
		values []string
		state  *tls.ConnectionState
		want   string
	}{
		{nil, nil, ""},
		{nil, shown, ""},
		{nil, verified, "b"},
		{[]string{"Bearer " + token}, nil, "a"},
		{[]string{"bearer  " + token + " "}, verified, "a"},
		{nil, expired, ""},
		{[]string{"Bearer " + token}, expired, "a"},
		{[]string{"Bearer x"}, verified, ""},
		{[]string{"Bearer "}, verified, ""},
		{[]string{""}, verified, ""},
		{[]string{"Basic " + token}, verified, ""},
		{[]string{"Bearer " + token, "Bearer " + token}, verified, ""},
	} {
		c := FromHeader(test.values, test.state)
		for range 2 { // it is remembered
			got := ""
			if p, ok := guard.Who(c, time.Now()); ok {
				got = p.Name
			}
			if got != test.want {
				t.Errorf("%q: %q, want %q", test.values, got, test.want)
			}
		}
		if _, ok := NewGuard(func() *Set { return new(Set) }, nil).Who(c, time.Now()); ok {
			t.Errorf("%q: known to another set", test.values)
		}
	}
	// A connection can outlast its token.
	ends := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	set = setOf(t, "{name: a, role: generate, expires: "+ends.Format(time.RFC3339)+", sha256: "+hash+"}")
	c := FromHeader([]string{"Bearer " + token}, nil)
	for at, want := range map[time.Duration]bool{-time.Second: true, 0: false} {
		if _, ok := guard.Who(c, ends.Add(-time.Second)); !ok {
			t.Fatal("the token is unknown")
		}
		if _, ok := guard.Who(c, ends.Add(at)); ok != want {
			t.Errorf("the token is known %v after it expired: %t, want %t", at, ok, want)
		}
	}
}

// certificateOf is a client's certificate with a common name, as a handshake
// leaves it.
func certificateOf(cn string, authority *x509.Certificate, until time.Time) *tls.ConnectionState {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: cn}, NotBefore: now.Add(-time.Hour), NotAfter: until}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf, authority}}}
}

// TestCertificateEnds: an open connection loses a certificate that has expired
// or whose authority has lost the server's trust.
func TestCertificateEnds(t *testing.T) {
	set := setOf(t, "{name: b, role: admin, cn: ops}")
	authority := &x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(2 * time.Hour)}
	for what, tokens := range map[string]func() *Set{"tokens": func() *Set { return set }, "certificates alone": nil} {
		trusted := true
		g := NewGuard(tokens, func(c *x509.Certificate, _ time.Time) bool { return trusted && c == authority })
		c := &Credentials{TLS: certificateOf("ops", authority, now.Add(time.Hour))} // of the whole connection
		known := func(at time.Duration) bool { _, ok := g.Who(c, now.Add(at)); return ok }
		if !known(0) || !known(time.Hour) {
			t.Errorf("%s: a certificate that is valid is not known", what)
		}
		if known(time.Hour + time.Second) {
			t.Errorf("%s: a certificate that has expired is known", what)
		}
		g.now = func() time.Time { return now.Add(time.Hour + time.Second) }
		if err := g.Allow(c, Take, "orders"); !errors.Is(err, ErrCertificate) || !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%s: a certificate that has expired: %v", what, err)
		}
		trusted = false
		if known(0) {
			t.Errorf("%s: a certificate whose authority was removed is known", what)
		}
		trusted = true
		if !known(0) {
			t.Errorf("%s: a certificate whose authority is back is not known", what)
		}
		c = &Credentials{TLS: certificateOf("ops", authority, now.Add(5*time.Hour))}
		if !known(3 * time.Hour) {
			t.Errorf("%s: a certificate whose authority was renewed, and is trusted, is not known", what)
		}
	}
}

// TestCertificateAlone: without a file, a certificate lets its owner take IDs,
// and not change or see anything.
func TestCertificateAlone(t *testing.T) {
	g := NewGuard(nil, nil)
	g.now = func() time.Time { return now }
	c := &Credentials{TLS: certificateOf("anyone", &x509.Certificate{NotAfter: now.Add(time.Hour)}, now.Add(time.Hour))}
	for do, want := range map[Action]error{Connect: nil, Take: nil, Create: nil, Inspect: nil, See: ErrForbidden, SeeAll: ErrForbidden, Change: ErrForbidden} {
		if err := g.Allow(c, do, "orders"); !errors.Is(err, want) {
			t.Errorf("action %d: %v, want %v", do, err, want)
		}
	}
	if err := g.Allow(new(Credentials), Take, "orders"); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("without a certificate: %v", err)
	}
}

// TestCreate: an entry creates sequencers by using them unless that is off.
func TestCreate(t *testing.T) {
	one, oneHash := NewToken()
	none, noneHash := NewToken()
	reader, readerHash := NewToken()
	set := setOf(t, "{name: a, role: generate, create: true, sequencers: ['a-*'], sha256: "+oneHash+"}",
		"{name: b, role: admin, create: false, sha256: "+noneHash+"}", "{name: c, role: read, sha256: "+readerHash+"}")
	g := NewGuard(func() *Set { return set }, nil)
	for _, row := range []struct {
		token, name string
		want        error
	}{{one, "a-1", nil}, {one, "b-1", ErrForbidden}, {none, "x", errNoCreation}, {reader, "x", ErrForbidden}} {
		if err := g.Allow(&Credentials{Token: row.token, Given: true}, Create, row.name); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
}
