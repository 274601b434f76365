//go:build unix

// Package kubetest starts a real Kubernetes API server with its etcd for tests,
// on loopback, in its own directory, and subjects them to the faults of control
// planes.
//
// It is not a cluster: no kubelet, controller or scheduler runs. So there are
// no pods, and objects are not deleted with their namespace.
package kubetest

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// AdminToken is the token of a user with all permissions.
const AdminToken = "admin-of-the-tests"

// A Cluster is an API server and its etcd. Its methods are for one goroutine.
type Cluster struct {
	// Address is where the API server listens, as HOST:PORT.
	Address string

	API, Etcd *Server

	t      testing.TB
	dir    string
	client *http.Client
}

// A Server is one of the two.
type Server struct {
	*proc.Process

	t    testing.TB
	path string
	args []string
}

// Start starts it, with its existing data. The API server answers some seconds
// later.
func (s *Server) Start() {
	s.t.Helper()
	s.Process = proc.Start(s.t, s.path, s.args...)
}

// Stop suspends it with SIGSTOP.
func (s *Server) Stop() { s.Signal(syscall.SIGSTOP) }

// Continue resumes it after Stop.
func (s *Server) Continue() { s.Signal(syscall.SIGCONT) }

// For returns the Cluster for another test, which fails in place of the one
// that started it. The Cluster ends with the test that started it.
func (c *Cluster) For(t testing.TB) *Cluster {
	again := *c
	again.t = t
	return &again
}

// Start starts a Cluster that ends with the test. The test is skipped if the
// servers are not built, and in short mode.
func Start(t testing.TB) *Cluster {
	t.Helper()
	apiserver, etcd := proc.Built(t, "kube.sh"), proc.Built(t, "etcd.sh")
	// The server makes its certificate when it starts. Kubeconfig verifies it.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	c := &Cluster{t: t, dir: t.TempDir(), client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
	c.keys()
	for range 5 { // another process may take a port in the meantime
		c.Address = proc.FreeAddress(t)
		client := "http://" + proc.FreeAddress(t)
		_, port, _ := net.SplitHostPort(c.Address)
		c.Etcd = &Server{t: t, path: etcd, args: proc.EtcdArgs(t, filepath.Join(c.dir, "etcd"), client)}
		c.API = &Server{t: t, path: apiserver, args: []string{
			"--etcd-servers", client, "--secure-port", port, "--bind-address", "127.0.0.1", "--cert-dir",
			filepath.Join(c.dir, "certs"),
			"--service-account-issuer", "https://kubernetes.default.svc", "--api-audiences", "api",
			"--service-account-key-file", filepath.Join(c.dir, "sa.pub"), "--service-account-signing-key-file",
			filepath.Join(c.dir, "sa.key"),
			"--authorization-mode", "RBAC", "--token-auth-file", filepath.Join(c.dir, "tokens.csv"),
			"--service-cluster-ip-range", "10.0.0.0/24",
		}}
		c.Etcd.Start()
		c.API.Start()
		t.Cleanup(c.end)
		if c.ready() {
			return c
		}
		c.end()
		t.Logf("the API server does not start: %s %s", c.API.Log(), c.Etcd.Log())
		must.Do(t, os.RemoveAll(filepath.Join(c.dir, "etcd")))
	}
	t.Fatal("the API server does not start")
	return nil
}

// keys writes the keys with which the API server signs tokens, and the token of
// its administrator.
func (c *Cluster) keys() {
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(c.t)
	public := must.Get(x509.MarshalPKIXPublicKey(&key.PublicKey))(c.t)
	c.write("sa.key", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	c.write("sa.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	c.write("tokens.csv", []byte(AdminToken+",admin,1,\"system:masters\"\n"))
}

func (c *Cluster) write(name string, content []byte) {
	must.Do(c.t, os.WriteFile(filepath.Join(c.dir, name), content, 0o600))
}

func (c *Cluster) end() {
	c.client.CloseIdleConnections()
	c.API.Kill()
	c.Etcd.Kill()
}

// Backup copies the data of the etcd, which must not be running, and returns
// the copy.
func (c *Cluster) Backup() (copied string) {
	c.t.Helper()
	copied = filepath.Join(c.t.TempDir(), "etcd")
	must.Do(c.t, os.CopyFS(copied, os.DirFS(filepath.Join(c.dir, "etcd"))))
	return copied
}

// Restore replaces the data of the etcd, which must not be running, by a copy.
func (c *Cluster) Restore(copied string) {
	c.t.Helper()
	data := filepath.Join(c.dir, "etcd")
	must.Do(c.t, os.RemoveAll(data))
	must.Do(c.t, os.CopyFS(data, os.DirFS(copied)))
}

// Ready waits until the API server answers.
func (c *Cluster) Ready() {
	c.t.Helper()
	if !c.ready() {
		c.t.Fatal("the API server does not answer")
	}
}

func (c *Cluster) ready() bool {
	for begin := time.Now(); time.Since(begin) < must.Patience; {
		if code, _ := c.try("GET", "/readyz", "", nil); code == http.StatusOK {
			return true
		}
		select {
		case <-c.API.Ended:
			return false
		case <-c.Etcd.Ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}

// CA returns the file with the certificate of the API server.
func (c *Cluster) CA() string { return filepath.Join(c.dir, "certs", "apiserver.crt") }

func (c *Cluster) try(method, path, kind string, body []byte, as ...string) (int, []byte) {
	q := must.Get(http.NewRequest(method, "https://"+c.Address+path, bytes.NewReader(body)))(c.t)
	q.Header.Set("Authorization", "Bearer "+AdminToken)
	if kind != "" {
		q.Header.Set("Content-Type", kind)
	}
	if len(as) > 0 {
		q.Header.Set("Impersonate-User", as[0])
		for _, group := range as[1:] {
			q.Header.Add("Impersonate-Group", group)
		}
	}
	answer, err := c.client.Do(q)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return answer.StatusCode, text
}

// Do makes a request with a JSON body as the administrator, or as a user with
// groups, and returns the status code and the answer.
func (c *Cluster) Do(method, path, body string, as ...string) (int, []byte) {
	return c.try(method, path, "application/json", []byte(body), as...)
}

// Patch is Do with a merge patch.
func (c *Cluster) Patch(path, body string, as ...string) (int, []byte) {
	return c.try("PATCH", path, "application/merge-patch+json", []byte(body), as...)
}

// Must is Do that fails the test unless the request succeeds.
func (c *Cluster) Must(method, path, body string) []byte {
	c.t.Helper()
	code, text := c.Do(method, path, body)
	if code/100 != 2 {
		c.t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	return text
}

// Namespace creates a namespace.
func (c *Cluster) Namespace(name string) {
	c.t.Helper()
	c.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`)
}

// resources are the paths of the objects that Apply supports, by kind.
var resources = map[string]string{
	"Namespace":                        "/api/v1/namespaces/",
	"ServiceAccount":                   "/api/v1/namespaces/NS/serviceaccounts/",
	"Role":                             "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles/",
	"RoleBinding":                      "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings/",
	"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/",
	"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/",
}

// ApplyObject applies an object, in JSON or YAML, on the server, by the path and
// the query of its resource, and returns the status code and the answer.
func (c *Cluster) ApplyObject(path string, object []byte) (int, []byte) {
	return c.try("PATCH", path, "application/apply-patch+yaml", object)
}

// Apply applies a manifest on the server, like kubectl apply --server-side -n
// NAMESPACE.
func (c *Cluster) Apply(namespace, manifest string) {
	c.t.Helper()
	text := must.Get(os.ReadFile(manifest))(c.t)
	for document := range strings.SplitSeq("\n"+string(text), "\n---") {
		field := func(name string) string {
			_, value, _ := strings.Cut("\n"+document, "\n"+name+": ")
			value, _, _ = strings.Cut(value, "\n")
			return strings.TrimSpace(value)
		}
		kind := field("kind")
		if kind == "" {
			continue
		}
		path := strings.Replace(resources[kind], "/NS/", "/"+namespace+"/", 1)
		path += field("  name") + "?fieldManager=test&force=true"
		code, answer := c.ApplyObject(path, []byte(document))
		if code/100 != 2 {
			c.t.Fatalf("apply %s %s: %d %s", kind, field("  name"), code, answer)
		}
	}
}

// Token returns a token of a service account from the TokenRequest API, where
// pods get theirs.
func (c *Cluster) Token(namespace, account string) string {
	c.t.Helper()
	answer := c.Must("POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		`{"spec":{"expirationSeconds":3600}}`)
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal(answer, &request); err != nil || request.Status.Token == "" {
		c.t.Fatalf("the answer has no token: %v: %s", err, answer)
	}
	return request.Status.Token
}

// Kubeconfig writes a kubeconfig for a namespace, and returns its path. An
// empty token means the administrator's; an empty server means the API server's
// address.
func (c *Cluster) Kubeconfig(server, namespace, token string) string {
	c.t.Helper()
	token = cmp.Or(token, AdminToken)
	authority := ""
	if !strings.HasPrefix(server, "http://") {
		authority = "certificate-authority: " + c.CA()
	}
	server = cmp.Or(server, "https://"+c.Address)
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: %s
    %s
users:
- name: test
  user:
    token: %s
contexts:
- name: test
  context:
    cluster: test
    user: test
    namespace: %s
current-context: test
`, server, authority, token, namespace)
	must.Do(c.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
