package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// TestLicenses: firn version --licenses has a license of every module that the
// program contains, and of Go.
func TestLicenses(t *testing.T) {
	code, text := runLine(t, "version --licenses")
	if code != exitFine {
		t.Fatalf("exit code %d", code)
	}
	lines := make(map[string]bool)
	for line := range strings.Lines(text) {
		lines[strings.TrimSpace(line)] = true
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".")
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOWORK=off"), os.Stderr
	out := must.Get(cmd.Output())(t)
	n := 0
	for module := range strings.Lines(string(out)) {
		module = strings.TrimSpace(module)
		if module == "" || strings.HasPrefix(module, "github.com/firnid/firn") {
			continue
		}
		n++
		if !lines[module] {
			t.Errorf("licenses.txt has no license of %s: make licenses", module)
		}
	}
	if n < 10 {
		t.Errorf("%d modules are listed: the test does not see all", n)
	}
	for _, name := range []string{"Firn", "Go, its runtime and standard library"} {
		if !lines[name] {
			t.Errorf("licenses.txt has no license of %s", name)
		}
	}
}
