//go:build unix

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/kubestore/kubetest"
	"github.com/firnid/firn/server/stores"
)

// kubeURL is the store of a namespace, by the service account of
// deploy/kubernetes/rbac.yaml, over a link to the API server.
func kubeURL(t *testing.T, c *kubetest.Cluster, l *kubetest.Link, namespace string) string {
	t.Helper()
	return "kubernetes://?timeout=5s&kubeconfig=" + c.Kubeconfig("https://"+l.Address, namespace, c.Token(namespace, "firn"))
}

// TestKubernetesChaos: processes make IDs with node IDs from a Kubernetes API server,
// while it, its etcd and processes are killed, stopped and cut off; then its etcd is
// restored from a backup, and fenced. Every ID is checked; so is the history of reads
// and writes of others, with porcupine, but for the restore.
func TestKubernetesChaos(t *testing.T) {
	r := seeded(t)
	c := kubetest.Start(t)
	const namespace, size = "chaos", 6
	c.Namespace(namespace)
	c.Apply(namespace, filepath.Join("..", "..", "deploy", "kubernetes", "rbac.yaml"))
	link := c.NewLink(t)
	f := newFleet(t, os.Args[0], chaosTask(kubeURL(t, c, link, namespace)))
	for i := range size {
		f.start(i)
	}
	h := newHistory(t, strings.Replace(kubeURL(t, c, link, namespace), "://", ":///history", 1))

	window := f.task.Window
	// Each does one thing, and returns for how long at least and what undoes it.
	faults := map[string]func() (time.Duration, func()){
		"API server killed": func() (time.Duration, func()) { c.KillAPI(); return 0, c.StartAPI },
		"etcd killed":       func() (time.Duration, func()) { c.KillEtcd(); return 0, c.StartEtcd },
		"both killed": func() (time.Duration, func()) {
			c.KillAPI()
			c.KillEtcd()
			return 0, func() { c.StartEtcd(); c.StartAPI() }
		},
		"API server stopped":                   func() (time.Duration, func()) { c.StopAPI(); return 0, c.ContinueAPI },
		"API server stopped beyond the window": func() (time.Duration, func()) { c.StopAPI(); return window, c.ContinueAPI },
		"etcd stopped beyond the window":       func() (time.Duration, func()) { c.StopEtcd(); return window, c.ContinueEtcd },
		"API server cut off":                   func() (time.Duration, func()) { link.Cut(true); return 0, func() { link.Cut(false) } },
		"answers cut": func() (time.Duration, func()) {
			link.CutAnswers(true)
			return time.Second, func() { link.CutAnswers(false) }
		},
		"connections cut": func() (time.Duration, func()) { link.Cut(true); link.Cut(false); return 0, func() {} },
	}
	counts := make(map[string]int)
	kinds := slices.Sorted(maps.Keys(faults))
	all := append(slices.Clone(kinds), workerKilled, workerStopped, workerPaused, workerEnded)
	step := func(least, more time.Duration) {
		for end := time.Now().Add(least + time.Duration(r.Int64N(int64(more)))); time.Now().Before(end); {
			f.step(r, counts)
			time.Sleep(50 * time.Millisecond)
		}
	}
	budget, begin := lasts(30*time.Second), time.Now()
	enough := func() bool {
		switch lasted := time.Since(begin); {
		case lasted < budget:
			return false
		case lasted > 5*budget:
			return true // what is missing is said below
		}
		return h.happened() && !slices.ContainsFunc(all, func(kind string) bool { return counts[kind] == 0 })
	}
	for !enough() {
		r.Shuffle(len(kinds), func(i, k int) { kinds[i], kinds[k] = kinds[k], kinds[i] })
		for _, kind := range kinds {
			if enough() {
				break
			}
			least, undo := faults[kind]()
			counts[kind]++
			step(least, time.Second)
			undo()
			step(0, time.Second)
			c.Ready() // an API server takes seconds to start
			step(0, time.Second)
		}
	}
	h.check("kubernetes")
	restoreAndFence(t, c, link, f, namespace, func() { step(3*window, time.Second) })
	counts["etcd restored"]++
	took := time.Since(begin)
	f.kill()
	seen := f.check()
	var text []string
	sum := 0
	for _, kind := range append(all, "etcd restored") {
		text = append(text, fmt.Sprintf("%s %d", kind, counts[kind]))
		sum += counts[kind]
		if counts[kind] == 0 {
			t.Errorf("there was no fault %q", kind)
		}
	}
	t.Logf("report: kubernetes under chaos for %v: %d processes at a time, %d in all, with a window of %v: %d IDs in %d runs, %d twice; %d numbers acquired, %d renewals, %d given back, %d lost, %d CAS unknown and %d refused",
		took.Round(time.Second), size, f.started, window, seen.ids, seen.runs, seen.twice, seen.Acquired, seen.Renewed, seen.Released, seen.Lost, seen.Unknown, seen.Refused)
	t.Logf("report: kubernetes under chaos: %d faults: %s", sum, strings.Join(text, ", "))
	if seen.twice > 0 {
		t.Errorf("%d IDs twice: %q", seen.twice, seen.examples)
	}
	if seen.ids == 0 || seen.Renewed == 0 {
		t.Errorf("%d IDs and %d renewals: nothing happened", seen.ids, seen.Renewed)
	}
	for _, line := range seen.errors {
		if strings.Contains(line, "went back") || strings.Contains(line, "fence") {
			continue // the restore, as it must be told
		}
		if strings.Contains(line, "is forbidden") {
			continue // an API server that has just started does not know its roles yet
		}
		t.Errorf("a false alarm, or what must not be: %s", line)
	}
}

// restoreAndFence restores a backup of the etcd from some windows ago, and fences the
// sequencer before any member reaches the API server again. Members make IDs after it.
func restoreAndFence(t *testing.T, c *kubetest.Cluster, link *kubetest.Link, f *fleet, namespace string, later func()) {
	t.Helper()
	stopped := func(what func()) {
		c.KillAPI()
		c.KillEtcd()
		what()
		c.StartEtcd()
		c.StartAPI()
		c.Ready()
	}
	var copied string
	stopped(func() { copied = c.Backup() })
	later()
	link.Cut(true)
	stopped(func() { c.Restore(copied) })
	direct, err := stores.Open(t.Context(), "kubernetes://?kubeconfig="+c.Kubeconfig("", namespace, ""), stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = direct.Close() }()
	report, err := grant.Fence(t.Context(), direct, "chaos", &grant.FenceOptions{Skew: time.Second, LongestWindow: f.task.Window})
	if err != nil {
		t.Fatal(err)
	}
	link.Cut(false)
	// Members hold node IDs again once the floor is near.
	until(t, "a member acquires a node ID after the fence", func() bool {
		later := time.Now().After(report.Floor.Add(time.Second))
		held := false
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = direct.List(ctx, "v1/chaos/n/", func(_ string, value []byte) bool {
			held = held || strings.Contains(string(value), `"state":"held"`)
			return true
		})
		return later && held
	})
}
