package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A fleet is a set of two servers on one store.
type fleet struct {
	t       *testing.T
	store   string
	servers [2]*exec.Cmd
	logs    [2]bytes.Buffer
	address [2]string
	seen    map[string]bool // IDs
}

// start starts a server at one of the addresses, and waits until it is ready.
func (f *fleet) start(i int, binary string) {
	f.t.Helper()
	f.logs[i].Reset()
	cmd := exec.Command(binary, "serve", "--listen", f.address[i], "--store", f.store)
	cmd.Stderr = &f.logs[i]
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.servers[i] = cmd
	f.t.Cleanup(func() { _ = cmd.Process.Kill() })
	deadline := time.Now().Add(10 * time.Minute)
	for {
		answer, err := http.Get("http://" + f.address[i] + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the server %s is not ready in time: %v", binary, err)
		}
		time.Sleep(10 * time.Millisecond) // it is another process
	}
}

// stop ends a server like an upgrade.
func (f *fleet) stop(i int) {
	f.t.Helper()
	if err := f.servers[i].Process.Signal(os.Interrupt); err != nil {
		f.t.Fatal(err)
	}
	if err := f.servers[i].Wait(); err != nil {
		f.t.Errorf("a server of the upgrade ends with %v:\n%s", err, &f.logs[i])
	}
}

// take takes IDs of two sequencers from the servers in turn, and expects new
// ones.
func (f *fleet) take(servers ...int) {
	f.t.Helper()
	for n := range 200 {
		name := []string{"orders", "users"}[n%2]
		for _, i := range servers {
			answer, err := http.Get("http://" + f.address[i] + "/v1/sequencers/" + name + "/next?count=100")
			if err != nil {
				f.t.Fatal(err)
			}
			var v struct{ IDs []string }
			err = json.NewDecoder(answer.Body).Decode(&v)
			answer.Body.Close()
			if err != nil || len(v.IDs) != 100 {
				f.t.Fatalf("%d IDs from server %d, %s, %v", len(v.IDs), i, answer.Status, err)
			}
			for _, id := range v.IDs {
				if f.seen[name+" "+id] {
					f.t.Fatalf("%s of %s was made twice, the second time by server %d", id, name, i)
				}
				f.seen[name+" "+id] = true
			}
		}
	}
}

// buildPrevious builds the server of the latest earlier commit that builds and
// has the same version of records.
func buildPrevious(t *testing.T, r *release, dir string) (firn string) {
	t.Helper()
	commits := strings.Fields(mustRun(t, r.repo, nil, "git", "rev-list", "--first-parent", "--max-count=6", "HEAD"))
	if len(commits) < 2 {
		t.Skip("the clone has no previous commit")
	}
	source, firn := filepath.Join(dir, "previous"), filepath.Join(dir, "firn-previous")
	mustRun(t, dir, nil, "git", "clone", "-q", "--shared", "--no-checkout", r.repo, source)
	version := func(commit string) string {
		return regexp.MustCompile(`(?m)^const version = .*$`).FindString(mustRun(t, r.repo, nil, "git", "show", commit+":grant/record.go"))
	}
	var failure error
	for _, hash := range commits[1:] {
		if version(hash) != version("HEAD") {
			continue
		}
		mustRun(t, source, nil, "git", "checkout", "-q", "--detach", hash)
		if _, failure = command(t.Context(), filepath.Join(source, "server"), []string{"GOWORK=off", "CGO_ENABLED=0"},
			"go", "build", "-trimpath", "-buildvcs=false", "-o", firn, program); failure == nil {
			return firn
		}
	}
	if failure == nil {
		t.Skip("the last commits have another version of records")
	}
	t.Fatal(failure)
	return ""
}

// TestUpgrade replaces the servers of the previous commit by those of this one,
// and one back: no ID is made twice, and all servers end properly.
func TestUpgrade(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows cannot send a program an interrupt")
	}
	r := theRelease(t)
	dir := t.TempDir()
	untar(t, gunzip(t, read(t, filepath.Join(r.out, r.name(host())+".tar.gz"))), dir)
	current := filepath.Join(dir, r.name(host()), "firn")
	previous := buildPrevious(t, r, dir)
	f := &fleet{
		t: t, store: "dir:" + filepath.Join(dir, "store") + "?create=true&volatile=true",
		address: [2]string{freeAddress(t), freeAddress(t)}, seen: make(map[string]bool),
	}
	f.start(0, previous)
	f.start(1, previous)
	f.take(0, 1)
	for i := range f.servers {
		f.stop(i)
		f.take(1 - i)
		f.start(i, current)
		f.take(0, 1)
	}
	f.stop(0)
	f.start(0, previous) // a rollback
	f.take(0, 1)
	f.stop(0)
	f.stop(1)
	t.Logf("report: upgrade and rollback: %d IDs, none twice", len(f.seen))
}
