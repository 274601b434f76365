package stores

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestLocalBuild: the build of make run has no clients of remote stores, which
// are a third of what a first build compiles.
func TestLocalBuild(t *testing.T) {
	nettest.Long(t)
	out := must.Get(exec.Command("go", "list", "-deps", "-tags", "firn_local", "../cmd/firn").Output())(t)
	for _, pkg := range strings.Fields(string(out)) {
		for _, remote := range []string{"k8s.io/", "go.etcd.io/", "github.com/jackc/", "github.com/go-sql-driver/", "github.com/firnid/firn/etcdstore", "github.com/firnid/firn/kubestore", "github.com/firnid/firn/s3store", "github.com/aws/"} {
			if strings.HasPrefix(pkg, remote) {
				t.Errorf("with the tag firn_local, firn depends on %s", pkg)
			}
		}
	}
	if out, err := exec.Command("go", "vet", "-tags", "firn_local", "-tests=false", ".").CombinedOutput(); err != nil {
		t.Errorf("go vet -tags firn_local: %v: %s", err, out)
	}
}
