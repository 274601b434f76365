//go:build unix

package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/server/stores"
)

// kubeURL is the store of a namespace, by the service account of
// deploy/kubernetes/rbac.yaml, over a link to the API server.
func kubeURL(t *testing.T, c *kubetest.Cluster, l *proc.Link, namespace string) string {
	t.Helper()
	return "kubernetes://?timeout=5s&kubeconfig=" + c.Kubeconfig("https://"+l.Address, namespace, c.Token(namespace, "firn"))
}

// TestKubernetesChaos: processes make IDs with node IDs from a Kubernetes API
// server, while it, its etcd and processes are killed, stopped and cut off;
// then its etcd is restored from a backup, and fenced. Every ID is checked; so
// is the history of reads and writes of others, but for the restore.
func TestKubernetesChaos(t *testing.T) {
	r := newRand(t)
	c := kubetest.Start(t)
	const namespace, size = "chaos", 6
	c.Namespace(namespace)
	c.Apply(namespace, filepath.Join("..", "..", "..", "..", "deploy", "kubernetes", "rbac.yaml"))
	link := proc.NewLink(t, c.Address)
	f := newFleet(t, chaosTask(kubeURL(t, c, link, namespace)))
	for i := range size {
		f.start(i)
	}
	h := newRecorder(t, strings.Replace(kubeURL(t, c, link, namespace), "://", ":///history", 1))

	window := f.task.Window
	faults := map[string]fault{
		"API server killed": func() (time.Duration, func()) { c.API.Kill(); return 0, c.API.Start },
		"etcd killed":       func() (time.Duration, func()) { c.Etcd.Kill(); return 0, c.Etcd.Start },
		"both killed": func() (time.Duration, func()) {
			c.API.Kill()
			c.Etcd.Kill()
			return 0, func() { c.Etcd.Start(); c.API.Start() }
		},
		"API server stopped":                   func() (time.Duration, func()) { c.API.Stop(); return 0, c.API.Continue },
		"API server stopped beyond the window": func() (time.Duration, func()) { c.API.Stop(); return window, c.API.Continue },
		"etcd stopped beyond the window":       func() (time.Duration, func()) { c.Etcd.Stop(); return window, c.Etcd.Continue },
		"API server cut off":                   func() (time.Duration, func()) { link.Cut(true); return 0, func() { link.Cut(false) } },
		"answers cut": func() (time.Duration, func()) {
			link.CutAnswers(true)
			return time.Second, func() { link.CutAnswers(false) }
		},
		"connections cut": func() (time.Duration, func()) { link.Reset(); return 0, func() {} },
	}
	e := &chaos{t: t, r: r, f: f, faults: faults, least: time.Second, ready: c.Ready}
	e.run(soakTime(), h.happened)
	h.check("kubernetes")
	const restored = "etcd restored"
	restoreAndFence(t, c, link, f, namespace, func() { e.step(3*window, time.Second) })
	e.kinds = append(e.kinds, restored)
	e.counts[restored]++
	f.kill()
	// A member must tell of the restore; and an API server that has just
	// started does not know its roles yet.
	e.report("kubernetes", "went back", "fence", "is forbidden")
}

// restoreAndFence restores a backup of the etcd from some windows ago, and
// fences the sequencer before any member reaches the API server again: the link
// is cut as by a firewall, and one member is killed and started again behind
// it. Members make IDs after it.
func restoreAndFence(t *testing.T, c *kubetest.Cluster, link *proc.Link, f *fleet, namespace string, later func()) {
	t.Helper()
	stopped := func(what func()) {
		c.API.Kill()
		c.Etcd.Kill()
		what()
		c.Etcd.Start()
		c.API.Start()
		c.Ready()
	}
	var copied string
	stopped(func() { copied = c.Backup() })
	later()
	link.Cut(true)
	stopped(func() { c.Restore(copied) })
	f.workers[0].end()
	f.start(0)
	direct := must.Get(stores.Open(t.Context(), "kubernetes://?kubeconfig="+c.Kubeconfig("", namespace, "")))(t)
	defer func() { _ = direct.Close() }()
	report := must.Get(grant.Fence(t.Context(), direct, "chaos", &grant.FenceOptions{Skew: time.Second, LongestWindow: f.task.Window}))(t)
	link.Cut(false)
	// Members hold node IDs again once the floor is near.
	must.Await(t, func() bool {
		later := time.Now().After(report.Floor.Add(time.Second))
		held := false
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = direct.List(ctx, "v1/chaos/n/", func(_ string, value []byte) bool {
			held = held || strings.Contains(string(value), `"state":"held"`)
			return true
		})
		return later && held
	}, "a member acquires a node ID after the fence")
}
