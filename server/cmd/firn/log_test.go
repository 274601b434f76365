//go:build linux || darwin

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// lines are those of the log that have an attribute of this value.
func (r *running) lines(key, value string) (all []map[string]any) {
	for line := range strings.Lines(r.log.String()) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && fmt.Sprint(m[key]) == value {
			all = append(all, m)
		}
	}
	return all
}

// TestServeReload: SIGHUP reaches a process that runs.
func TestServeReload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "firn.yaml")
	must.Do(t, os.WriteFile(file, []byte("log: {format: json}\n"), 0o600))
	r := startProcess(t, "127.0.0.1:0", "--node 3 --config", file)
	must.Do(t, os.WriteFile(file, []byte("log: {format: json, level: debug}\n"), 0o600))
	must.Do(t, r.cmd.Process.Signal(syscall.SIGHUP))
	r.await(t, "configuration reloaded")
	_, header, _ := r.post(t, "orders")
	id := header.Get("X-Request-Id")
	r.await(t, id)
	if lines := r.lines("request_id", id); len(lines) == 0 || lines[0]["level"] != "DEBUG" {
		t.Errorf("%v, want a line of the request %s", lines, id)
	}
}
