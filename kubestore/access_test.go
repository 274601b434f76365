//go:build unix

package kubestore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/must"
)

// manifests are the files that operators apply.
var manifests = filepath.Join("..", "deploy", "kubernetes")

// role applies rbac.yaml in a new namespace, and returns the namespace and a
// kubeconfig of its service account.
func role(t testing.TB, c *kubetest.Cluster) (namespace, kubeconfig string) {
	t.Helper()
	namespace = newNamespace(t, c)
	c.Apply(namespace, filepath.Join(manifests, "rbac.yaml"))
	must.Await(t, func() bool {
		code, _ := c.Do("GET", fmt.Sprintf(leasesPath, namespace), "", "system:serviceaccount:"+namespace+":firn")
		return code == http.StatusOK
	}, "the role is in force")
	return namespace, c.Kubeconfig("", namespace, c.Token(namespace, "firn"))
}

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/"

// TestRole: the role in deploy/kubernetes is sufficient for everything that a
// Store does, and does not allow deletion.
func TestRole(t *testing.T) {
	c := sharedCluster(t)
	namespace, kubeconfig := role(t, c)
	s := open(t, Options{Kubeconfig: kubeconfig})
	calls.CAS(t, s, "a", "", "1")
	calls.CAS(t, s, "a", "1", "2")
	calls.Refused(t, s, "a", "1", "3")
	if keys, _ := calls.List(t, s, ""); len(keys) != 1 {
		t.Errorf("List yields %q, want a", keys)
	}
	told := s.Watch(t.Context(), "a")
	<-told // the start
	<-told // the current state
	user := "system:serviceaccount:" + namespace + ":firn"
	path := fmt.Sprintf(leasesPath, namespace)
	for _, path := range []string{path + "firn.a", path + "firn-identity", path} {
		if code, text := c.Do("DELETE", path, "", user); code != http.StatusForbidden {
			t.Errorf("DELETE %s as %s: %d %s, want 403", path, user, code, text)
		}
	}
}

// TestDenied: a forbidden write is certainly not applied, and the errors of
// Open explain what to do.
func TestDenied(t *testing.T) {
	c := sharedCluster(t)
	namespace, kubeconfig := role(t, c)
	s := open(t, Options{Kubeconfig: kubeconfig})
	calls.CAS(t, s, "a", "", "1")
	rules := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/roles/firn-store"
	for _, verbs := range []string{`"get","list","watch"`, `"get","list"`, `"list"`} {
		c.Patch(rules, `{"rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":[`+verbs+`]}]}`)
		must.Await(t, func() bool {
			_, err := s.CAS(t.Context(), "new", nil, []byte("1"))
			_, getErr := s.Get(t.Context(), "a")
			return err != nil && (getErr == nil) == strings.Contains(verbs, "get")
		}, "the role allows %s", verbs)
		calls.NotSent(t, s, "a", "1", "2")
		calls.NotSent(t, s, "b", "", "2")
	}

	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"another namespace":  {Options{Kubeconfig: kubeconfig, Namespace: "default"}, "permission denied: "},
		"no namespace":       {Options{Kubeconfig: c.Kubeconfig("", "not-there", "")}, "namespace not-there not found: create it with kubectl create namespace not-there"},
		"an unknown token":   {Options{Kubeconfig: c.Kubeconfig("", namespace, "wrong")}, "does not recognize this user"},
		"nothing listens":    {Options{Kubeconfig: c.Kubeconfig("https://127.0.0.1:1", namespace, "")}, "connection refused"},
		"no TLS":             {Options{Kubeconfig: c.Kubeconfig("http://"+c.Address, namespace, "")}, "is not a Kubernetes API server"},
		"no such file":       {Options{Kubeconfig: "/nonexistent"}, "/nonexistent"},
		"no such context":    {Options{Kubeconfig: kubeconfig, Context: "other"}, `context "other" does not exist`},
		"a bad prefix":       {Options{Kubeconfig: kubeconfig, Prefix: "Firn"}, `prefix "Firn"`},
		"a bad namespace":    {Options{Kubeconfig: kubeconfig, Namespace: "a/b"}, `namespace "a/b"`},
		"a negative timeout": {Options{Kubeconfig: kubeconfig, Timeout: -1}, "Timeout is -1ns"},
	} {
		if tt.o.Timeout == 0 {
			tt.o.Timeout = must.Patience
			if name == "nothing listens" || name == "no TLS" { // Open retries until then
				tt.o.Timeout = 2 * time.Second
			}
		}
		s, err := Open(t.Context(), &tt.o)
		if err == nil {
			_ = s.Close()
		}
		calls.Error(t, "Open with "+name, err, tt.want)
	}
}

// TestReason: an attempt that the context ends does not hide why the attempt
// before it failed.
func TestReason(t *testing.T) {
	for name, call := range map[string]func(context.Context, *store) error{
		"begin": func(ctx context.Context, s *store) error { return s.begin(ctx) },
		"Get":   func(ctx context.Context, s *store) error { _, err := s.Get(ctx, "a"); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 1 {
				http.Error(w, "", http.StatusServiceUnavailable)
				return
			}
			cancel()
			<-r.Context().Done()
		}))
		s := must.Get(newStore(&rest.Config{Host: server.URL}, "default", "firn"))(t)
		calls.Error(t, name, call(ctx, s), context.Canceled, "503 Service Unavailable")
		_ = s.Close()
		server.Close()
	}
}

// TestGetManyInGroups: more than 8 keys are read at the same time, because a
// member that finds no free node ID asks for 128 within 5 s.
func TestGetManyInGroups(t *testing.T) {
	var groups sync.WaitGroup
	groups.Add(16)
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) <= 16 {
			groups.Done()
			groups.Wait()
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","reason":"NotFound","details":{"name":%q,"kind":"leases"}}`, path.Base(r.URL.Path))
	}))
	defer server.Close()
	s := must.Get(newStore(&rest.Config{Host: server.URL}, "default", "firn"))(t)
	defer s.Close()
	keys := make([]string, 128)
	for i := range keys {
		keys[i] = fmt.Sprintf("v1/orders/n/%04d", i)
	}
	if values, err := s.GetMany(t.Context(), keys); err != nil || len(values) != 128 || n.Load() != 128 {
		t.Errorf("GetMany = %d values, %v, after %d requests", len(values), err, n.Load())
	}
}

// TestDialAfterClose: a connection whose dial ends after Close is closed too.
func TestDialAfterClose(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	s := must.Get(newStore(&rest.Config{Host: l.Addr().String()}, "default", "firn"))(t)
	s.Close()
	conn := must.Get(s.dial(t.Context(), "tcp", l.Addr().String()))(t)
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read = %v, want net.ErrClosed", err)
	}
}

// TestAdmissionPolicy: with the policy in deploy/kubernetes, a Store works as
// before, its Leases cannot be deleted or lose their label, and namespaces can
// be deleted.
func TestAdmissionPolicy(t *testing.T) {
	c := sharedCluster(t)
	namespace, kubeconfig := role(t, c)
	path := fmt.Sprintf(leasesPath, namespace)
	s := open(t, Options{Kubeconfig: kubeconfig})
	calls.CAS(t, s, "a", "", "1")
	c.Must("POST", path, `{"metadata":{"name":"of-another"}}`)
	c.Apply("", filepath.Join(manifests, "admission-policy.yaml"))
	policies := "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
	t.Cleanup(func() {
		c.Must("DELETE", policies+"ybindings/firn-leases", "")
		c.Must("DELETE", policies+"ies/firn-leases", "")
		c.Must("POST", fmt.Sprintf(leasesPath, "default"), `{"metadata":{"name":"firn.last","labels":{"app.kubernetes.io/managed-by":"firn"}}}`)
		must.Await(t, func() bool {
			code, _ := c.Do("DELETE", fmt.Sprintf(leasesPath, "default")+"firn.last", "")
			return code == http.StatusOK
		}, "the policy is gone")
	})
	const denied = http.StatusUnprocessableEntity
	must.Await(t, func() bool {
		code, _ := c.Do("DELETE", path+"firn.a?dryRun=All", "")
		return code == denied
	}, "the policy is in force")
	controller := []string{"system:kube-controller-manager", "system:masters"}
	collector := []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:masters"}
	for _, q := range []struct {
		method, path, labels string
		as                   []string
	}{
		{"DELETE", "firn.a", "", nil},
		{"DELETE", "firn-identity", "", nil},
		{"DELETE", "", "", nil},
		{"DELETE", "?labelSelector=app.kubernetes.io/managed-by=firn", "", nil},
		{"DELETE", "firn.a", "", collector},
		{"DELETE", "firn.a", "", controller},
		{"PATCH", "firn.a", `{"app.kubernetes.io/managed-by":null}`, nil},
		{"PATCH", "firn.a", `{"app.kubernetes.io/managed-by":"Helm"}`, nil},
		{"PATCH", "firn.a", `null`, nil},
	} {
		do := func() (int, []byte) { return c.Do(q.method, path+q.path, "", q.as...) }
		if q.method == "PATCH" {
			do = func() (int, []byte) { return c.Patch(path+q.path, `{"metadata":{"labels":`+q.labels+`}}`) }
		}
		if code, text := do(); code != denied || !strings.Contains(string(text), "Lease of Firn's") {
			t.Errorf("%v: %d %s, want %d with Firn's message", q, code, text, denied)
		}
	}
	if code, text := c.Patch(path+"firn.a", `{"metadata":{"labels":{"team":"a"}}}`); code != http.StatusOK {
		t.Errorf("add a label: %d %s, want 200", code, text)
	}
	calls.CAS(t, s, "a", "1", "2")
	if code, text := c.Do("DELETE", path+"of-another", ""); code/100 != 2 && code != http.StatusNotFound {
		t.Errorf("delete a Lease of another program: %d %s, want success", code, text)
	}

	// The steps of the namespace controller, in order.
	if code, text := c.Do("DELETE", "/api/v1/namespaces/"+namespace, ""); code/100 != 2 {
		t.Fatalf("delete the namespace: %d %s", code, text)
	}
	if code, text := c.Do("DELETE", path+"firn.a", ""); code != denied {
		t.Errorf("delete as the administrator in a namespace that is being deleted: %d %s, want %d", code, text, denied)
	}
	code, text := denied, []byte(nil)
	for begin := time.Now(); code == denied && time.Since(begin) < time.Minute; { // the policy sees the namespace in a cache
		code, text = c.Do("DELETE", path+"firn.a", "", controller...)
	}
	if code/100 != 2 {
		t.Errorf("delete as the controller manager in a namespace that is being deleted: %d %s, want success", code, text)
	}
	cleaner := []string{"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccounts",
		"system:serviceaccounts:kube-system", "system:authenticated"}
	if code, text := c.Do("DELETE", path, "", cleaner...); code/100 != 2 {
		t.Errorf("delete all as the namespace controller: %d %s, want success", code, text)
	}
	if _, text := c.Do("GET", path, ""); !strings.Contains(string(text), `"items":[]`) {
		t.Errorf("leases are left in the namespace: %s", text)
	}
}

// TestLineageOfNamespaces: a namespace that was deleted and created again is
// another store.
func TestLineageOfNamespaces(t *testing.T) {
	c := sharedCluster(t)
	namespace := newNamespace(t, c)
	s := open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, "")})
	first, _, err := s.Lineage(t.Context())
	must.Do(t, err)
	// No controller runs that would empty a namespace, so its Leases are
	// deleted here.
	c.Must("DELETE", fmt.Sprintf(leasesPath, namespace), "")
	second, _, err := s.Lineage(t.Context())
	if err != nil || second == first || second == "" {
		t.Errorf("Lineage = %q, %v after all leases were deleted, want another than %q", second, err, first)
	}
	again := open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, ""), Prefix: "other"})
	if id, _, err := again.Lineage(t.Context()); id != second || err != nil {
		t.Errorf("Lineage of another prefix = %q, %v, want %q", id, err, second)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Lineage(ctx)
	calls.Error(t, "Lineage with a context that is done", err, grant.ErrNotSent)
}
