package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/must"
)

// kubeNamespace is where the rights of a firn in Kubernetes are, in tests.
const kubeNamespace = "ids"

// startKube starts an API server that grants what docs/kubernetes.md says.
func startKube(t *testing.T) *kubetest.Cluster {
	t.Helper()
	c := kubetest.Start(t)
	c.Namespace(kubeNamespace)
	c.Apply(kubeNamespace, filepath.Join("..", "..", "..", "deploy", "kubernetes", "rbac.yaml"))
	return c
}

// TestServersOnKubernetes: three firn serve on one API server, which hangs now
// and then.
func TestServersOnKubernetes(t *testing.T) {
	inFull(t)
	c := startKube(t)
	config := c.Kubeconfig("", kubeNamespace, c.Token(kubeNamespace, "firn"))
	testServers(t, "Kubernetes", 3, "kubernetes://?kubeconfig="+config, func() {
		c.API.Stop()
		time.AfterFunc(time.Second, c.API.Continue)
	})
}

// inPod is a firn that sees what a container of a pod sees of the API server:
// the address in its environment, and the token, the certificate and the
// namespace of its service account as files. They are in a mount namespace, for
// which unshare is the command.
func inPod(t *testing.T, c *kubetest.Cluster, unshare []string, args string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"token": c.Token(kubeNamespace, "firn"), "ca.crt": string(must.Get(os.ReadFile(c.CA()))(t)), "namespace": kubeNamespace,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	const script = `mount -t tmpfs none /var/run && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount &&
		cp "$1"/* /var/run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"`
	cmd := firnCommand(context.Background(), args+" --store kubernetes://")
	in := exec.Command(unshare[0], append(unshare[1:], append([]string{"sh", "-c", script, "sh", dir}, cmd.Args...)...)...)
	host, port, _ := net.SplitHostPort(c.Address)
	in.Env = append(cmd.Env, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port, "KUBECONFIG=", "HOME=/nonexistent")
	in.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return in
}

// TestPod: in a pod, firn needs no configuration but the store's kind. The
// default window is 10 minutes. kubectl get leases shows who holds a node ID,
// and that it was given back when the pod ends.
func TestPod(t *testing.T) {
	var unshare []string
	for _, how := range [][]string{{"unshare", "-m"}, {"unshare", "-rm"}} {
		if unshare == nil && exec.Command(how[0], append(how[1:], "sh", "-c", "mount -t tmpfs none /var/run")...).Run() == nil {
			unshare = how
		}
	}
	if unshare == nil {
		t.Skip("no mount namespaces here")
	}
	c := startKube(t)
	if out, err := inPod(t, c, unshare, "sequencer create orders").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	leases := "/apis/coordination.k8s.io/v1/namespaces/" + kubeNamespace + "/leases"
	if text := string(c.Must("GET", leases+"/firn.v1.orders.config", "")); !strings.Contains(text, `\"window\":600000`) {
		t.Errorf("the default window is not 10 min: %s", text)
	}
	p := started(t, inPod(t, c, unshare, "serve --log-format json --listen 127.0.0.1:0"))
	answer := must.Get(http.Post(p.url+"/v1/sequencers/orders/next", "", nil))(t)
	answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Fatalf("next: %s\n%s", answer.Status, p.log)
	}
	wantLeases(t, c.Must("GET", leases, ""), 1)
	must.Do(t, p.cmd.Process.Signal(syscall.SIGTERM))
	<-p.ended
	wantLeases(t, c.Must("GET", leases, ""), 0)
}

// wantLeases checks how many node IDs are held, as kubectl shows it; kubestore
// tests what else a lease says.
func wantLeases(t *testing.T, text []byte, want int) {
	t.Helper()
	if held := strings.Count(string(text), `"firn/state":"held"`); held != want {
		t.Errorf("%d leases have a holder, want %d: %s", held, want, text)
	}
}
