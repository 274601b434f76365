package kubestore

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
)

// serviceAccount is the directory of a pod's service account.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// Check returns the dangers of this cluster and of the user's permissions, one
// sentence each, and nothing if all is well. It changes nothing. The text of a
// danger stays the same while it lasts.
func (s *store) Check(ctx context.Context) (dangers []string, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	may, err := s.permissions(call)
	if err != nil {
		return nil, s.failed(ctx, "look up the permissions of this user", err)
	}
	var missing []string
	for _, verb := range []string{"get", "list", "watch", "create", "update"} {
		if !may.allows(verb) && !may.Incomplete {
			missing = append(missing, verb)
		}
	}
	if len(missing) > 0 {
		dangers = append(dangers, fmt.Sprintf("permission denied: this user cannot %s leases in namespace %s: apply deploy/kubernetes/rbac.yaml",
			strings.Join(missing, ", "), s.namespace))
	}
	// An administrator at a terminal may have all permissions.
	if _, err := os.Stat(path.Join(serviceAccount, "token")); err == nil && may.allows("delete") {
		dangers = append(dangers, fmt.Sprintf("this service account can delete leases in namespace %s, and a deleted lease makes IDs repeat: remove the verb delete from its role", s.namespace))
	}
	if back := s.wentBack.Load(); back != nil {
		dangers = append(dangers, *back)
	}
	return dangers, nil
}

// permissions are those of a user in a namespace, as the API server reports
// them.
type permissions struct {
	Incomplete bool `json:"incomplete"`
	Rules      []struct {
		Verbs     []string `json:"verbs"`
		APIGroups []string `json:"apiGroups"`
		Resources []string `json:"resources"`
		Names     []string `json:"resourceNames"`
	} `json:"resourceRules"`
}

// permissions asks the API server what this user may do in the namespace.
func (s *store) permissions(ctx context.Context) (*permissions, error) {
	review := map[string]any{
		"apiVersion": "authorization.k8s.io/v1",
		"kind":       "SelfSubjectRulesReview",
		"spec":       map[string]string{"namespace": s.namespace},
	}
	answer, _, err := s.send(ctx, http.MethodPost, s.reviews.String(), review)
	if err != nil {
		return nil, err
	}
	var result struct {
		Status permissions `json:"status"`
	}
	err = decode(answer, &result)
	return &result.Status, err
}

// allows reports whether a verb is allowed for all Leases.
func (p *permissions) allows(verb string) bool {
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	for _, r := range p.Rules {
		if len(r.Names) == 0 && has(r.Verbs, verb) && has(r.APIGroups, "coordination.k8s.io") && has(r.Resources, "leases") {
			return true
		}
	}
	return false
}
