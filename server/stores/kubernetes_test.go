package stores

import (
	"strings"
	"testing"
)

// TestKubernetesURLs: what is wrong with a URL is said without a cluster.
func TestKubernetesURLs(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	t.Setenv("HOME", "/nonexistent")
	for url, want := range map[string]string{
		"kubernetes://":                               "",
		"kubernetes://ids":                            "",
		"kubernetes://ids/prod/eu?timeout=2s":         "",
		"kubernetes:///prod":                          "",
		"kubernetes://user@ids":                       "a user or a password",
		"kubernetes://user:secret@ids":                "a user or a password",
		"kubernetes://10.0.0.1:6443":                  "looks like an address",
		"kubernetes://api.example.com":                "looks like an address",
		"kubernetes://IDS":                            `namespace "IDS"`,
		"kubernetes://ids/Prod":                       `prefix "Prod"`,
		"kubernetes://ids/a_b":                        `prefix "a_b"`,
		"kubernetes://ids?namespace=a":                `unknown parameter "namespace"`,
		"kubernetes://ids?context=a&context=b":        "context is given twice",
		"kubernetes://ids?context=a":                  `context "a" does not exist`,
		"kubernetes://ids?kubeconfig=/nonexistent":    "/nonexistent",
		"kubernetes://ids?timeout=-1s":                "timeout",
		"kubernetes://" + strings.Repeat("a", 64):     "namespace",
		"kubernetes://ids/" + strings.Repeat("a", 64): "prefix",
	} {
		err := Check(url)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%q) = %v, want %q", url, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("Check(%q) = %v: it has the password", url, err)
		}
	}
	_, err := Open(t.Context(), "kubernetes://")
	if err == nil || !strings.Contains(err.Error(), "no kubeconfig found, and this is not a pod") {
		t.Errorf("Open = %v, want that there is no kubeconfig", err)
	}
}
