package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestDoctorCertificates: doctor judges the files that serve would read, and
// names them. What serve refuses is a finding too.
func TestDoctorCertificates(t *testing.T) {
	dir := t.TempDir()
	nettest.Certificates(t, dir) // valid for less than a day
	config := filepath.Join(dir, "firn.yaml")
	text := fmt.Sprintf("tls: {cert: %[1]s/server.crt, key: %[1]s/server.key, client-ca: %[1]s/ca.crt}\n", dir)
	must.Do(t, os.WriteFile(config, []byte(text), 0o600))
	code, out := runLine(t, "doctor --config "+config)
	for _, file := range []string{"server.crt", "ca.crt"} {
		if want := "fix      TLS          " + filepath.Join(dir, file); code != exitNo || !strings.Contains(out, want) {
			t.Errorf("exit %d, want %q:\n%s", code, want, out)
		}
	}
	must.Do(t, os.Remove(filepath.Join(dir, "ca.crt")))
	if code, out := runLine(t, "doctor --config "+config); code != exitNo ||
		!strings.Contains(out, "fix      config       --tls-cert: ") || !strings.Contains(out, "ca.crt: no such file") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}
