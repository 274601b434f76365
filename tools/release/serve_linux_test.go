package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// freeAddress returns an unused loopback address.
func freeAddress(t *testing.T) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
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
	mustDo(t, cmd.Start())
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
	mustDo(s.t, s.cmd.Process.Signal(os.Interrupt))
	if err := s.cmd.Wait(); err != nil {
		s.t.Fatalf("%v ends with %v\n%s", s.cmd.Args, err, &s.log)
	}
}

// take takes 100 IDs.
func (s *server) take(name string) []string {
	s.t.Helper()
	answer := must(http.Get("http://" + s.address + "/v1/sequencers/" + name + "/next?count=100"))(s.t)
	defer answer.Body.Close()
	var v struct{ IDs []string }
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil || len(v.IDs) != 100 {
		s.t.Fatalf("%d IDs of %s: %s, %v", len(v.IDs), name, answer.Status, err)
	}
	return v.IDs
}
