package kubestore

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
)

// dns matches a DNS-1123 subdomain, the form of names in Kubernetes.
var dns = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func TestNames(t *testing.T) {
	for _, tt := range []struct{ prefix, key, want string }{
		{"firn", "v1/orders/n/0042", "firn.v1.orders.n.0042"},
		{"prod/eu-1", "v1/order--ids/config", "prod--4eu-1.v1.order--ids.config"},
		{"firn", strings.Repeat("a", 248), "firn." + strings.Repeat("a", 248)},
		{"firn", strings.Repeat("a", 249), ""}, // a hash
		{"prod/eu", "v1/Orders/n/0042", "prod--4eu--9lj27c7ok7nlfd9h6s5c5efr4gevac8i9mf01fqem3dd57qbr3ca0"},
		{"firn", "a.b", ""}, {"firn", "a/b-", ""}, {"firn", "a_b", ""},
	} {
		got, hashed := nameOf(tt.prefix, tt.key)
		if hashed != strings.Contains(got, "--9") || got != tt.want && (tt.want != "" || !hashed) {
			t.Errorf("nameOf(%q, %q) = %q, %v, want %q", tt.prefix, tt.key, got, hashed, tt.want)
		}
	}
	for _, name := range []string{"firn-identity", "firn", "firn.", "firn-v1", "firn--9abc", "other.a", "firn--4a", "firn..a"} {
		if key, ok := keyOf("firn", name, ""); ok {
			t.Errorf("keyOf(%q) = %q, want none: no key has this name", name, key)
		}
	}
}

func TestPrefixes(t *testing.T) {
	for prefix, want := range map[string]bool{
		"firn": true, "a": true, "1": true, "prod/eu-1": true, strings.Repeat("a", 63): true,
		"": false, "-": false, "a-": false, "a/": false, "/a": false, "a//b": false, "A": false, "a.b": false, "a_b": false, "a--b": false, "ö": false, strings.Repeat("a", 64): false,
	} {
		if got := checkPrefix(prefix); got != want {
			t.Errorf("checkPrefix(%q) = %v, want %v", prefix, got, want)
		}
	}
}

// FuzzNames: each key has its own name, which is valid in Kubernetes and
// identifies the key.
func FuzzNames(f *testing.F) {
	f.Add("firn", "v1/orders/n/0042", "v1/Orders/n/0042")
	f.Add("a/b-c", "a-B", "a--b")
	f.Add("firn", strings.Repeat("Z", 256), strings.Repeat("Z", 255))
	f.Fuzz(func(t *testing.T, prefix, a, b string) {
		if !checkPrefix(prefix) {
			return
		}
		nameA, ok := valid(t, prefix, a)
		nameB, okB := valid(t, prefix, b)
		if ok && okB && (nameA == nameB) != (a == b) {
			t.Errorf("keys %q and %q of prefix %q have the names %q and %q", a, b, prefix, nameA, nameB)
		}
		if key, ok := keyOf(prefix, a, b); ok { // a name
			if again, _ := nameOf(prefix, key); again != a {
				t.Errorf("keyOf(%q, %q, %q) = %q, whose name is %q", prefix, a, b, key, again)
			}
		}
	})
}

func valid(t *testing.T, prefix, key string) (name string, ok bool) {
	if grant.CheckKey(key) != nil {
		return "", false
	}
	name, _ = nameOf(prefix, key)
	if len(name) > maxName || !dns.MatchString(name) {
		t.Errorf("nameOf(%q, %q) = %q, which Kubernetes does not take", prefix, key, name)
	}
	if got, ok := keyOf(prefix, name, key); got != key || !ok {
		t.Errorf("keyOf(%q, %q) = %q, %v, want %q", prefix, name, got, ok, key)
	}
	for _, other := range []string{prefix + "/v1", "firn", "f"} {
		if got, ok := keyOf(other, name, key); ok && other != prefix {
			t.Errorf("keyOf(%q, %q) = %q: it is of prefix %q", other, name, got, prefix)
		}
	}
	return name, true
}

// TestCheckOptions: nil and the zero Options are valid, wherever the program
// runs; Check contacts nothing.
func TestCheckOptions(t *testing.T) {
	for _, tt := range []struct {
		o     *Options
		valid bool
	}{{nil, true}, {new(Options), true}, {&Options{Prefix: "a--b"}, false}, {&Options{Timeout: -1}, false}} {
		if err := tt.o.Check(); tt.valid != (err == nil) || !tt.valid && !errors.Is(err, grant.ErrOptions) {
			t.Errorf("Check of %+v: %v", tt.o, err)
		}
	}
}
