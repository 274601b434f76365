package localstore

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
)

// serviceAccount is the directory of a pod's service account.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// PodRole returns a manifest with the permissions that this pod needs for the
// store kubernetes://, and the namespace to apply it in. Without a service
// account these are for the account "default" in the namespace "default".
func PodRole() (namespace, manifest string) {
	return podRole(func(name string) ([]byte, error) { return os.ReadFile(path.Join(serviceAccount, name)) })
}

// podRole is PodRole with its input.
func podRole(read func(name string) ([]byte, error)) (namespace, manifest string) {
	namespace, account := "default", "default"
	if text, err := read("namespace"); err == nil && len(text) > 0 {
		namespace = strings.TrimSpace(string(text))
	}
	if token, err := read("token"); err == nil {
		// The subject is system:serviceaccount:NAMESPACE:NAME.
		var claims struct {
			Subject string `json:"sub"`
		}
		parts := strings.Split(string(token), ".")
		if len(parts) == 3 {
			if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil && json.Unmarshal(text, &claims) == nil {
				if s := strings.Split(claims.Subject, ":"); len(s) == 4 && s[1] == "serviceaccount" {
					account = s[3]
				}
			}
		}
	}
	return namespace, fmt.Sprintf(roleManifest, account, namespace)
}

// roleManifest is deploy/kubernetes/rbac.yaml without the service account.
const roleManifest = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: firn-store
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: firn-store
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: firn-store
subjects:
- kind: ServiceAccount
  name: %s
  namespace: %s
`
