//go:build unix

package deploy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/firnid/firn/internal/kubetest"
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
	pool := x509.NewCertPool()
	if ca, err := os.ReadFile(cluster.CA()); err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatalf("the authority of the API server: %v", err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	accepted := func(name string, o object) (ok bool, text string) {
		t.Helper()
		kind, version := fmt.Sprint(o["kind"]), fmt.Sprint(o["apiVersion"])
		base := "/apis/" + version
		if !strings.Contains(version, "/") {
			base = "/api/" + version
		}
		resource, ok := plurals[kind]
		if !ok {
			t.Fatalf("%s: no resource is known for the kind %s", name, kind)
		}
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		url := fmt.Sprintf("https://%s%s/namespaces/ids/%s/%s?fieldManager=test&dryRun=All&fieldValidation=Strict",
			cluster.Address, base, resource, at(o, "metadata", "name"))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, url, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+kubetest.AdminToken)
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		got, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusCreated, answer.Status + " " + string(got)
	}
	applied := 0
	for name, values := range valueSets {
		objects, _ := render(t, values)
		for _, o := range objects {
			if strings.HasPrefix(fmt.Sprint(o["apiVersion"]), "monitoring.coreos.com/") {
				continue // the operator's definitions do not exist here
			}
			if ok, text := accepted(name, o); !ok {
				t.Errorf("%s: %s: %s", name, o["kind"], text)
			}
			applied++
		}
	}
	for _, name := range []string{"firn.yaml", "rbac.yaml"} {
		data, err := os.ReadFile(filepath.Join(root, "deploy", "kubernetes", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range parse(t, name, string(data)) {
			if ok, text := accepted(name, o); !ok {
				t.Errorf("%s: %s: %s", name, o["kind"], text)
			}
			applied++
		}
	}

	// A check that mistakes are detected.
	var wrong object
	if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: Service, metadata: {name: firn}, spec: {ports: [{port: 3476}], selecter: {a: b}}}"), &wrong); err != nil {
		t.Fatal(err)
	}
	if ok, text := accepted("wrong", wrong); ok {
		t.Errorf("a Service with a misspelt field is accepted: %s", text)
	}
	t.Logf("report: a Kubernetes API server took %d objects of the chart and the manifests", applied)
}
