//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/server/internal/test/etcdtest"
	"github.com/firnid/firn/server/internal/test/sqltest"
)

// The programs of docs/go.md over the real stores.
func TestGoPrograms(t *testing.T) {
	if os.Getenv("FIRN_ALL") == "" {
		t.Skip("it compiles many packages: make test-all runs it, or FIRN_ALL=1")
	}
	for _, program := range []struct {
		name, variable string
		value          func(t *testing.T) string
	}{
		{"postgres", "DATABASE_URL", func(t *testing.T) string { return sqltest.PostgreSQL(t).URL() }},
		{"etcd", "ETCD_ENDPOINTS", func(t *testing.T) string {
			hosts := strings.TrimPrefix(etcdtest.Start(t).URL(""), "etcd://")
			return strings.TrimSuffix(hosts, "/")
		}},
		{"kubernetes", "KUBECONFIG", func(t *testing.T) string {
			c := kubetest.Start(t)
			c.Namespace("ids")
			return c.Kubeconfig("", "ids", "")
		}},
	} {
		t.Run(program.name, func(t *testing.T) {
			value := program.value(t)
			binary := proc.BuildGo(t, "../../../../examples/go", "./"+program.name)
			var last firn.ID
			for range 2 { // a second run begins where the first one has ended
				cmd := exec.CommandContext(t.Context(), binary)
				cmd.Env = append(os.Environ(), program.variable+"="+value)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				for _, line := range strings.Fields(string(out)) {
					id, err := firn.ParseID(line)
					if err != nil || id <= last {
						t.Errorf("%q follows %v, %v", line, last, err)
					}
					last = id
				}
			}
		})
	}
}
