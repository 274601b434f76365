//go:build unix

package deploy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/must"
)

// plurals are the resources for the kinds that the chart creates.
var plurals = map[string]string{
	"ConfigMap": "configmaps", "Deployment": "deployments", "Service": "services", "ServiceAccount": "serviceaccounts",
	"Role": "roles", "RoleBinding": "rolebindings", "PodDisruptionBudget": "poddisruptionbudgets",
	"NetworkPolicy": "networkpolicies",
}

// TestServerSide lets a real API server check the objects of the chart and the
// manifests, by server-side apply without a change: unknown fields and wrong
// values are errors.
func TestServerSide(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server")
	}
	cluster := kubetest.Start(t)
	cluster.Ready()
	cluster.Namespace("ids")
	applied := 0
	apply := func(name string, o object) {
		t.Helper()
		kind, version := fmt.Sprint(o["kind"]), fmt.Sprint(o["apiVersion"])
		base := "/apis/" + version
		if !strings.Contains(version, "/") {
			base = "/api/" + version
		}
		path := fmt.Sprintf("%s/namespaces/ids/%s/%s?fieldManager=test&dryRun=All&fieldValidation=Strict",
			base, plurals[kind], at(o, "metadata", "name"))
		if code, answer := cluster.ApplyObject(path, must.Get(json.Marshal(o))(t)); code/100 != 2 {
			t.Errorf("%s: %s: %d %s", name, kind, code, answer)
		}
		applied++
	}
	for name, values := range valueSets {
		objects, _ := render(t, values)
		for _, o := range objects {
			if !strings.HasPrefix(fmt.Sprint(o["apiVersion"]), "monitoring.coreos.com/") { // the operator's definitions do not exist here
				apply(name, o)
			}
		}
	}
	for _, name := range []string{"firn.yaml", "rbac.yaml"} {
		for _, o := range parse(t, name, read(t, "deploy/kubernetes/"+name)) {
			apply(name, o)
		}
	}
	t.Logf("report: a Kubernetes API server took %d objects of the chart and the manifests", applied)
}
