package main

import (
	"bytes"
	"encoding/json"
	"net"
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

// freeAddress returns an unused loopback address.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A server is a running firn serve.
type server struct {
	t       *testing.T
	address string
	cmd     *exec.Cmd
	log     bytes.Buffer
}

// start runs a command that serves at an address, and waits until it is ready.
func start(t *testing.T, address string, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{t: t, address: address, cmd: cmd}
	cmd.Stderr = &s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(10 * time.Millisecond) { // it is another process
		answer, err := http.Get("http://" + address + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return s
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v is not ready in time: %v\n%s", cmd.Args, err, &s.log)
		}
	}
}

// stop ends the server as systemd and Kubernetes do.
func (s *server) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Fatalf("%v ends with %v\n%s", s.cmd.Args, err, &s.log)
	}
}

// take takes 100 IDs.
func (s *server) take(name string) []string {
	s.t.Helper()
	answer, err := http.Get("http://" + s.address + "/v1/sequencers/" + name + "/next?count=100")
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var v struct{ IDs []string }
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil || len(v.IDs) != 100 {
		s.t.Fatalf("%d IDs of %s: %s, %v", len(v.IDs), name, answer.Status, err)
	}
	return v.IDs
}

// buildPrevious builds the server of the latest earlier commit that builds and
// has the same version of records.
func buildPrevious(t *testing.T, dir string) (firn string) {
	t.Helper()
	repo := repository(t)
	commits := strings.Fields(mustRun(t, repo, nil, "git", "rev-list", "--first-parent", "--max-count=6", "HEAD"))
	if len(commits) < 2 {
		t.Skip("the clone has no previous commit")
	}
	source, firn := filepath.Join(dir, "previous"), filepath.Join(dir, "firn-previous")
	mustRun(t, dir, nil, "git", "clone", "-q", "--shared", "--no-checkout", repo, source)
	version := func(commit string) string {
		return regexp.MustCompile(`(?m)^const version = .*$`).FindString(mustRun(t, repo, nil, "git", "show", commit+":grant/record.go"))
	}
	var failure error
	for _, hash := range commits[1:] {
		if version(hash) != version("HEAD") {
			continue
		}
		mustRun(t, source, nil, "git", "checkout", "-q", "--detach", hash)
		if _, failure = command(t.Context(), filepath.Join(source, "server"), []string{"GOWORK=off", "CGO_ENABLED=0"},
			"go", "build", "-trimpath", "-buildvcs=false", "-o", firn, "./cmd/firn"); failure == nil {
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
	previous := buildPrevious(t, dir)
	seen := make(map[string]bool)
	take := func(servers ...*server) {
		t.Helper()
		for n := range 200 {
			name := []string{"orders", "users"}[n%2]
			for _, s := range servers {
				for _, id := range s.take(name) {
					if seen[name+" "+id] {
						t.Fatalf("%s of %s was made twice", id, name)
					}
					seen[name+" "+id] = true
				}
			}
		}
	}
	serve := func(address, binary string) *server {
		t.Helper()
		return start(t, address, exec.Command(binary, "serve", "--listen", address, "--store", "dir:"+filepath.Join(dir, "store")+"?create=true&volatile=true"))
	}
	a, b := serve(freeAddress(t), previous), serve(freeAddress(t), previous)
	take(a, b)
	a.stop()
	take(b)
	a = serve(a.address, current)
	take(a, b)
	b.stop()
	take(a)
	b = serve(b.address, current)
	take(a, b)
	a.stop()
	a = serve(a.address, previous) // a rollback
	take(a, b)
	a.stop()
	b.stop()
	t.Logf("report: upgrade and rollback: %d IDs, none twice", len(seen))
}
