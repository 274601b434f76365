package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"
)

// TestWho: a client that shows a token is known by it or not at all, whatever its
// certificate says.
func TestWho(t *testing.T) {
	token, hash := NewToken()
	set, err := Parse([]byte("tokens:\n- {name: a, role: generate, sha256: "+hash+"}\n- {name: b, role: admin, certificate: ops}\n"), "tokens")
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{Subject: pkix.Name{CommonName: "ops"}}
	verified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
	shown := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
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
		{[]string{"Bearer x"}, verified, ""},
		{[]string{"Bearer "}, verified, ""},
		{[]string{""}, verified, ""},
		{[]string{"Basic " + token}, verified, ""},
		{[]string{"Bearer " + token, "Bearer " + token}, verified, ""},
	} {
		c := FromHeader(test.values, test.state)
		for range 2 { // it is remembered
			got := ""
			if p, ok := set.Who(c, time.Now()); ok {
				got = p.Name
			}
			if got != test.want {
				t.Errorf("%q: %q, want %q", test.values, got, test.want)
			}
		}
		if _, ok := new(Set).Who(c, time.Now()); ok {
			t.Errorf("%q: known to another set", test.values)
		}
	}
}
