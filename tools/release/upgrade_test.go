package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// TestUpgrade replaces the servers of the previous commit by those of this one,
// one at a time, and one back: no ID is made twice, and all servers end properly.
func TestUpgrade(t *testing.T) {
	r := theRelease(t)
	dir, _ := r.untarGz(t, r.name(host())+".tar.gz")
	current, previous := filepath.Join(dir, r.name(host()), "firn"), filepath.Join(dir, "firn-previous")
	repo, source := repository(t), filepath.Join(dir, "source")
	mustRun(t, dir, nil, "git", "clone", "-q", "--shared", repo, source)
	if _, err := command(t.Context(), source, nil, "git", "checkout", "-q", "--detach", "HEAD~"); err != nil {
		t.Skipf("the clone has no previous commit: %v", err)
	}
	version := func(dir string) string {
		return regexp.MustCompile(`(?m)^const version = .*$`).FindString(string(read(t, filepath.Join(dir, "grant", "record.go"))))
	}
	if version(source) != version(repo) {
		t.Skip("the previous commit has another version of records")
	}
	mustRun(t, filepath.Join(source, "server"), []string{"GOWORK=off", "CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false", "-o", previous, "./cmd/firn")

	store := "dir:" + filepath.Join(dir, "store") + "?create=true&volatile=true"
	seen := make(map[string]bool)
	take := func(s *server, name string) {
		for _, id := range s.take(name) {
			if seen[name+" "+id] {
				t.Fatalf("%s of %s was made twice", id, name)
			}
			seen[name+" "+id] = true
		}
	}
	var servers []*server
	for i, binary := range []string{previous, previous, current, current, previous} {
		if i >= 2 {
			servers[0].stop()
			servers = servers[1:]
		}
		address := freeAddress(t)
		create := fmt.Sprintf("--create-on-first-use=%v", i == 0) // later servers must find what the first one wrote
		servers = append(servers, start(t, address, exec.Command(binary, "serve", "--listen", address, "--store", store, create)))
		for range 50 {
			for _, s := range servers {
				take(s, "orders")
				take(s, "users")
			}
		}
	}
	for _, s := range servers {
		s.stop()
	}
	t.Logf("report: upgrade and rollback: %d IDs, none twice", len(seen))
}
