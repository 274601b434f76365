package stores

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPodRole: the role for a pod is that of deploy/kubernetes, for the pod's
// service account.
func TestPodRole(t *testing.T) {
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:ids:web"}`)) + ".c2ln"
	for _, tt := range []struct {
		files              map[string]string
		namespace, account string
	}{
		{map[string]string{"namespace": "ids\n", "token": token}, "ids", "web"},
		{map[string]string{"namespace": "ids", "token": "nonsense"}, "ids", "default"},
		{map[string]string{"namespace": "ids", "token": "a.b.c"}, "ids", "default"},
		{nil, "default", "default"},
	} {
		namespace, manifest := podRole(func(name string) ([]byte, error) {
			if text, ok := tt.files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		})
		if want := "  name: " + tt.account + "\n  namespace: " + tt.namespace + "\n"; namespace != tt.namespace || !strings.HasSuffix(manifest, want) {
			t.Errorf("podRole of %v = %q, %q, want %q", tt.files, namespace, manifest, want)
		}
	}
	_, manifest := podRole(func(string) ([]byte, error) { return nil, fs.ErrNotExist })
	page, err := os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes", "rbac.yaml"))
	if err != nil {
		t.Skip("the module stands alone, without deploy/kubernetes")
	}
	common, _, _ := strings.Cut(manifest, "- kind: ServiceAccount\n")
	if !strings.Contains(string(page), common) {
		t.Errorf("deploy/kubernetes/rbac.yaml does not have the role that firn prints:\n%s", common)
	}
}

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
	_, err := Open(t.Context(), "kubernetes://", Options{})
	if err == nil || !strings.Contains(err.Error(), "no kubeconfig found, and this is not a pod") {
		t.Errorf("Open = %v, want that there is no kubeconfig", err)
	}
}
