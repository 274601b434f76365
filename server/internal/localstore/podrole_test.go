package localstore

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
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "kubernetes", "rbac.yaml"))
	if err != nil {
		t.Skip("the module stands alone, without deploy/kubernetes")
	}
	common, _, _ := strings.Cut(manifest, "- kind: ServiceAccount\n")
	if !strings.Contains(string(page), common) {
		t.Errorf("deploy/kubernetes/rbac.yaml does not have the role that firn prints:\n%s", common)
	}
}
