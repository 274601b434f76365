package auth

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

var now = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// setOf returns the set of a file with these entries.
func setOf(t *testing.T, entries ...string) *Set {
	t.Helper()
	return must.Get(Parse([]byte("tokens:\n- "+strings.Join(entries, "\n- ")+"\n"), "f"))(t)
}

func TestNewToken(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		token, hash := NewToken()
		if len(token) != len(prefix)+tokenLen || !strings.HasPrefix(token, prefix) || Hash(token) != hash || len(hash) != 64 || seen[token] {
			t.Fatalf("NewToken() = %q, %q", token, hash)
		}
		seen[token] = true
		if strings.Trim(token[len(prefix):], digits) != "" {
			t.Fatalf("%q has other digits", token)
		}
	}
}

func TestSet(t *testing.T) {
	billing, billingHash := NewToken()
	reader, readerHash := NewToken()
	old, oldHash := NewToken()
	s := setOf(t, "name: billing\n  sha256: "+strings.ToUpper(billingHash)+"\n  role: generate\n  sequencers: [orders, 'inv-*']",
		"{name: reader, sha256: "+readerHash+", role: read}",
		"{name: old, sha256: "+oldHash+", role: admin, expires: 2026-11-20T00:00:00Z}",
		"{name: ops, cn: ops.example, role: admin, expires: 2027-01-01T00:00:00Z}",
		"{name: mesh, uri: 'spiffe://example/billing', role: generate}")
	if s.Len() != 5 {
		t.Errorf("%d principals, want 5", s.Len())
	}
	if p, ok := s.Token(old, now); ok {
		t.Errorf("a token that has expired is %v", p.Name)
	}
	for _, wrong := range []string{"", billing + "x", billing[1:], billingHash, strings.ToLower(billing)} {
		if p, ok := s.Token(wrong, now); ok {
			t.Errorf("%q is %v", wrong, p.Name)
		}
	}
	certificate := func(cn, dns, uri string) *x509.Certificate {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: cn}}
		if dns != "" {
			c.DNSNames = []string{dns}
		}
		if uri != "" {
			u, _ := url.Parse(uri)
			c.URIs = []*url.URL{u}
		}
		return c
	}
	byToken := func(token string) *Principal { p, _ := s.Token(token, now); return p }
	byCert := func(c *x509.Certificate) *Principal { p, _ := s.Certificate(c, now); return p }
	if p := byCert(certificate("", "", "")); p != nil {
		t.Errorf("an empty certificate is %v", p.Name)
	}
	if p := byCert(certificate(billingHash, "", "")); p != nil {
		t.Errorf("a certificate that is named like a hash is %v", p.Name)
	}
	// A name is of one kind: an authority that lets clients choose their common
	// name does not let them be a URI.
	for _, c := range []*x509.Certificate{certificate("spiffe://example/billing", "", ""), certificate("", "ops.example", ""), certificate("", "", "ops.example")} {
		if p := byCert(c); p != nil {
			t.Errorf("the certificate with common name %q, DNS names %q and URIs %v is %v", c.Subject.CommonName, c.DNSNames, c.URIs, p.Name)
		}
	}
	for want, p := range map[string]*Principal{
		"billing": byToken(billing), "reader": byToken(reader), "ops": byCert(certificate("ops.example", "", "")), "mesh": byCert(certificate("", "", "spiffe://example/billing")),
	} {
		if p == nil || p.Name != want {
			t.Errorf("%+v, want %s", p, want)
		}
	}
	for name, want := range map[string]bool{"orders": true, "inv-1": true, "inv-": true, "order": false, "orders2": false} {
		if got := byToken(billing).May(Take, name); got != want {
			t.Errorf("billing may take IDs of %s: %t, want %t", name, got, want)
		}
	}
}

func TestParseFaults(t *testing.T) {
	token, hash := NewToken()
	for _, test := range []struct{ text, want string }{
		{"tokens: [", "f:1: did not find"},
		{"[]", "f:1: unexpected !!seq"},
		{"tokns: []", "f:1: unknown key tokns"},
		{"tokens: {}", "f:1: unexpected !!map"},
		{"tokens:\n- 5", "f:2: unexpected !!int `5`"},
		{"tokens:\n- ~", "f:2: an entry needs"},
		{"tokens:\n- {}", "f:2: name must have 1 to 128 bytes and no control characters\nf:2: role is \"\": it must be generate, read or admin\nf:2: an entry needs exactly one of"},
		{"tokens:\n- {name: a, role: root, sha256: " + hash + "}", `f:2: role is "root": it must be generate, read or admin`},
		{"tokens:\n- {name: a, role: read, sha256: " + token + "}", "f:2: sha256 holds a token, not its hash"},
		{"tokens:\n- {name: a, role: read, sha256: abc}", "f:2: sha256 must have 64"},
		{"tokens:\n- {name: a, role: read, sha256: " + hash + ", cn: x}", "f:2: an entry needs exactly one of"},
		{"tokens:\n- {name: a, role: read, uri: x, dns: x}", "f:2: an entry needs exactly one of"},
		{"tokens:\n- {name: a, role: generate, cn: x, create: -1}", "f:2: unexpected !!int `-1`"},
		{"tokens:\n- {name: a, role: read, sha256: " + hash + ", expires: soon}", "f:2: expires"},
		{"tokens:\n- {name: a, role: read, sha256: " + hash + ", sequencers: []}", "f:2: sequencers must be a list"},
		{"tokens:\n- {name: a, role: read, sha256: " + hash + ", sequencers: ['*a*']}", "one *"},
		{"tokens:\n- {name: a, role: read, role: read, sha256: " + hash + "}", `f:2: mapping key "role" already defined`},
		{"tokens:\n- {name: a, role: read, sha256: " + hash + "}\n- {name: a, role: read, sha256: " + hash + "}", "f:3: this name, token or certificate is already used on line 2\nf:3: this name"},
		{"tokens:\n- {name: a, role: read, sha256: " + hash + ", sequencers: ['or ders']}", "neither a sequencer name nor a pattern"},
		{"tokens:\n- {name: ~, role: read, sha256: " + hash + "}", "f:2: name must have"},
		{"tokens:\n- {name: \"a\\nb\", role: read, sha256: " + hash + "}", "f:2: name must have"},
		{"tokens:\n- name: a\n  role: read\n  sha256: " + hash + "\n  sequencers:", "f:5: sequencers needs a value"},
		{"tokens:\n- name: a\n  role: read\n  sha256: " + hash + "\n  expires: ~", "f:5: expires needs a value"},
		{"tokens:\n- {name: &a x, role: read, sha256: " + hash + "}\n- {name: *a, role: read, cn: y}", "f:3: name needs a value"},
		{"tokens: []\ntokens: []", `f:2: mapping key "tokens" already defined at line 1`},
		{"tokens: []\n---\ntokens: []", "second YAML document"},
		{"tokens:\n" + strings.Repeat("- 5\n", 100), "f: and 50 more"},
		{"tokens:\n- {name: [a], role: read, sha256: " + hash + "}", "f:2: unexpected !!seq"},
		{"tokens:\n- {name: a, role: read, sha256: " + hash + ", colour: red}", "f:2: unknown key colour"},
	} {
		s, err := Parse([]byte(test.text), "f")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, %v, want %q", test.text, s, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("%q: the error has the token", test.text)
		}
	}
	for _, text := range []string{"", "\n", "tokens:", "# nobody", "---", "{}", "~"} {
		if s, err := Parse([]byte(text), "f"); err == nil || !strings.Contains(err.Error(), "f:1: no tokens found") {
			t.Errorf("%q: %v, %v, want an error: it may be cut off", text, s, err)
		}
	}
	if s, err := Parse([]byte("tokens: []"), "f"); err != nil || s.Len() != 0 {
		t.Errorf("%v, %v, want no principal", s, err)
	}
}

// TestOpen: a file that other users can change is refused, or warned of.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if _, err := Open(path, nil); err == nil {
		t.Error("a missing file is accepted")
	}
	token, hash := NewToken()
	must.Do(t, os.WriteFile(path, []byte("tokens:\n- {name: a, role: read, sha256: "+hash+"}"), 0o600))
	for mode, want := range map[os.FileMode]string{0o644: "readable by other users (mode 0644)", 0o640: "", 0o600: "", 0o664: "chmod go-w", 0o666: "chmod o-w"} {
		must.Do(t, os.Chmod(path, mode))
		said := ""
		f, err := Open(path, func(text string) { said = text })
		if err != nil {
			said = err.Error()
		} else if _, ok := f.Get().Token(token, now); !ok {
			t.Errorf("mode %o: the token is unknown", mode)
		}
		if (err != nil) != (mode == 0o666) || !strings.Contains(said, want) || (want == "") != (said == "") {
			t.Errorf("mode %o: %v, %q, want %q", mode, err, said, want)
		}
	}
	for text, want := range map[string]string{"firn_a\n": "firn_a", " \n": ""} {
		must.Do(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o600)))
		if f, err := OpenToken(path); (err != nil) != (want == "") || err == nil && f.Get() != want {
			t.Errorf("OpenToken of %q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	_, hash := NewToken()
	f.Add([]byte("tokens:\n- {name: a, role: read, sha256: " + hash + ", sequencers: [a, 'b*'], expires: 2027-01-01T00:00:00Z}"))
	f.Add([]byte("tokens: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, "f")
		if (s == nil) == (err == nil) {
			t.Fatal(s, err)
		}
		if err == nil {
			s.Token("firn_x", now)
		}
	})
}
