package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/kubetest"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A pod is a firn serve that sees what a container of a pod sees of the API
// server: the address in its environment, and the token, the certificate and
// the namespace of its service account in files of its own. Where a process
// cannot have a mount namespace of its own it gets a kubeconfig instead.
type pod struct {
	testServer
	url      string
	ready    bool
	draining bool
}

// A deployment is what a ReplicaSet controller and a kubelet would run.
type deployment struct {
	t         *testing.T
	cluster   *kubetest.Cluster
	namespace string
	unshare   []string // how a process gets a mount namespace, or nil

	mu   sync.Mutex // guards pods, and ready and draining of each
	pods []*pod
	n    int

	killed, ended int
}

const (
	replicas       = 10
	maxSurge       = 3 // of 10, by a Deployment's default of 25 %
	maxUnavailable = 2
	grace          = 30 * time.Second // a pod's terminationGracePeriodSeconds
)

// mountNamespace says how a process gets one of its own, where it can.
func mountNamespace() []string {
	for _, how := range [][]string{{"unshare", "-m"}, {"unshare", "-rm"}} {
		if exec.Command(how[0], append(how[1:], "sh", "-c", "mount -t tmpfs none /var/run")...).Run() == nil {
			return how
		}
	}
	return nil
}

// command is firn in a pod of its own, with a token of its own.
func (d *deployment) command(args string) *exec.Cmd {
	d.n++
	dir := d.t.TempDir()
	token := d.cluster.Token(d.namespace, "firn")
	authority, err := os.ReadFile(d.cluster.CA())
	if err != nil {
		d.t.Fatal(err)
	}
	for name, content := range map[string]string{"token": token, "ca.crt": string(authority), "namespace": d.namespace} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	host, port, _ := net.SplitHostPort(d.cluster.Address)
	cmd := firnCommand(context.Background(), args+" --store kubernetes://")
	if d.unshare == nil {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+d.cluster.Kubeconfig("", d.namespace, token))
		return cmd
	}
	const script = `mount -t tmpfs none /var/run && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount &&
		cp "$1"/* /var/run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"`
	in := exec.Command(d.unshare[0], append(d.unshare[1:], append([]string{"sh", "-c", script, "sh", dir}, cmd.Args...)...)...)
	in.Env = append(cmd.Env, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port, "KUBECONFIG=", "HOME=/nonexistent")
	in.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return in
}

// start starts a pod. It is ready when its probe succeeds.
func (d *deployment) start() {
	d.t.Helper()
	p := new(pod)
	p.cmd = d.command("serve --listen 127.0.0.1:0 --log-format json --request-timeout 3s")
	logs, err := p.cmd.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	var kept bytes.Buffer
	p.ended = make(chan struct{})
	found := make(chan string, 1)
	go func() {
		defer close(p.ended)
		url, err := urlIn(io.TeeReader(logs, &kept))
		if err == nil {
			found <- url
		}
		_, _ = kept.ReadFrom(logs)
		_ = p.cmd.Wait()
	}()
	select {
	case p.url = <-found:
	case <-p.ended:
		d.t.Fatalf("a pod does not start: %s", &kept)
	case <-time.After(nettest.Patience):
		d.t.Fatalf("a pod does not start within %v", nettest.Patience)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pods = append(d.pods, p)
}

// probe asks each pod whether it is ready, as a kubelet does.
func (d *deployment) probe(client *http.Client) (all, ready int) {
	d.mu.Lock()
	pods := append([]*pod(nil), d.pods...)
	d.mu.Unlock()
	for _, p := range pods {
		ok := false
		if resp, err := client.Get(p.url + "/readyz"); err == nil {
			ok = resp.StatusCode == http.StatusOK
			_ = resp.Body.Close()
		}
		d.mu.Lock()
		p.ready = ok
		if !p.draining {
			all++
			if ok {
				ready++
			}
		}
		d.mu.Unlock()
	}
	return all, ready
}

// terminate does what a kubelet does with a pod that is deleted: SIGTERM, and
// SIGKILL after the grace period. At the same time it leaves the endpoints of
// its service.
func (d *deployment) terminate(p *pod, sig syscall.Signal, all *sync.WaitGroup) {
	d.mu.Lock()
	p.draining = true
	if sig == syscall.SIGKILL {
		d.killed++
	} else {
		d.ended++
	}
	d.mu.Unlock()
	all.Go(func() {
		_ = p.cmd.Process.Signal(sig)
		select {
		case <-p.ended:
		case <-time.After(grace):
			d.t.Errorf("a pod has not ended %v after SIGTERM", grace)
			_ = p.cmd.Process.Signal(syscall.SIGKILL)
			<-p.ended
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for i := range d.pods {
			if d.pods[i] == p {
				d.pods = append(d.pods[:i:i], d.pods[i+1:]...)
				break
			}
		}
	})
}

// pick is a pod that a client of the service reaches.
func (d *deployment) pick() *pod {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ready []*pod
	for _, p := range d.pods {
		if p.ready && !p.draining {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[rand.IntN(len(ready))]
}

// rollout replaces all pods, in the order of a Deployment: new ones as long as
// no more than replicas+maxSurge run, old ones end as long as
// replicas-maxUnavailable are ready. One in ten is killed, as by a node that
// runs out of memory.
func (d *deployment) rollout(client *http.Client) {
	d.t.Helper()
	d.mu.Lock()
	old := append([]*pod(nil), d.pods...)
	d.mu.Unlock()
	started := 0
	var ending sync.WaitGroup
	defer ending.Wait()
	for begin := time.Now(); ; {
		all, ready := d.probe(client)
		if started == replicas && len(old) == 0 && ready == replicas {
			return
		}
		if time.Since(begin) > nettest.Patience {
			d.t.Fatalf("the rollout does not end: %d of %d pods are ready", ready, all)
		}
		for ; started < replicas && all < replicas+maxSurge; all++ {
			d.start()
			started++
		}
		for ; len(old) > 0 && ready > replicas-maxUnavailable; ready-- {
			sig := syscall.SIGTERM
			if len(old) == replicas/2 {
				sig = syscall.SIGKILL
			}
			d.terminate(old[0], sig, &ending)
			old = old[1:]
		}
		time.Sleep(50 * time.Millisecond) // until the next probe
	}
}

// TestRolloutOnKubernetes: ten firn serve on a real API server, each with a
// token of its own, are replaced in the order and with the signals of a
// Deployment's rollout while clients take IDs from them. No ID is made twice,
// and who ends in order gives its node ID back. No kubelet is involved.
func TestRolloutOnKubernetes(t *testing.T) {
	c := kubetest.Start(t)
	d := &deployment{t: t, cluster: c, namespace: "ids", unshare: mountNamespace()}
	if d.unshare == nil {
		t.Log("report: SKIPPED: no mount namespaces here: pods of the rollout use kubeconfigs")
	}
	c.Namespace(d.namespace)
	c.Apply(d.namespace, filepath.Join("..", "..", "..", "deploy", "kubernetes", "rbac.yaml"))
	if out, err := d.command("sequencer create chaos --max-ahead 200ms --layout default").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	leases := "/apis/coordination.k8s.io/v1/namespaces/" + d.namespace + "/leases"
	if text := string(c.Must("GET", leases+"/firn.v1.chaos.config", "")); !strings.Contains(text, `\"window\":600000`) {
		t.Errorf("the default window is not 10 min: %s", text)
	}
	client := &http.Client{Timeout: nettest.Patience, Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for range replicas {
		d.start()
	}
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, p := range d.pods {
			p.end(syscall.SIGKILL)
		}
	}()
	for ready := 0; ready < replicas; _, ready = d.probe(client) {
		time.Sleep(50 * time.Millisecond)
	}
	counted := &handedOut{layout: firn.Default(), spans: make(map[uint64][]slots)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	var answered, refused atomic.Int64
	for n := range 6 {
		clients.Go(func() {
			client := &http.Client{Timeout: 5 * time.Second, Transport: new(http.Transport)}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				p := d.pick()
				if p == nil {
					t.Error("no pod is ready")
					return
				}
				if err := counted.take(client, p.url, n%2 == 0); err != nil {
					refused.Add(1)
				} else {
					answered.Add(1)
				}
				time.Sleep(5 * time.Millisecond) // leaves the processor to others
			}
		})
	}
	rollouts := 0
	for begin, lasts := time.Now(), chaosLasts(); rollouts < 2 || time.Since(begin) < lasts; {
		if rollouts > 0 && testing.Short() {
			break
		}
		d.rollout(client)
		rollouts++
	}
	stop()
	clients.Wait()
	spans := counted.duplicates(t)
	held := d.held(leases)
	// A pod that no client has reached holds nothing.
	if most := replicas + d.killed; held == 0 || held > most {
		t.Errorf("%d leases have a holder, want at most %d: those of %d pods and of %d that were killed", held, most, replicas, d.killed)
	}
	if spans == 0 || answered.Load() == 0 {
		t.Error("no IDs were made")
	}
	t.Logf("report: rollouts on kubernetes: %d rollouts of %d firn serve: %d told to stop, %d killed: %d requests answered, %d not: %d IDs in %d runs of %d node IDs, no duplicate",
		rollouts, replicas, d.ended, d.killed, answered.Load(), refused.Load(), counted.ids.Load(), spans, len(counted.spans))
}

// held is how many node IDs have a holder, as kubectl get leases shows it.
func (d *deployment) held(leases string) (n int) {
	d.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Name   string
				Labels map[string]string
			}
			Spec struct {
				HolderIdentity       string
				LeaseDurationSeconds int
				RenewTime            string
			}
		}
	}
	if err := json.Unmarshal(d.cluster.Must("GET", leases, ""), &list); err != nil {
		d.t.Fatal(err)
	}
	for _, l := range list.Items {
		if l.Metadata.Labels["firn/node"] == "" {
			continue
		}
		isHeld := l.Metadata.Labels["firn/state"] == "held"
		if isHeld {
			n++
		}
		if full := l.Spec.HolderIdentity != "" && l.Spec.LeaseDurationSeconds >= 1 && l.Spec.RenewTime != ""; full != isHeld {
			d.t.Errorf("lease %s is held: %v, and its spec is %+v", l.Metadata.Name, isHeld, l.Spec)
		}
	}
	return n
}
