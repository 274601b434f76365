// Package s3test starts versitygw, a real S3 server that keeps objects in
// files, for tests.
package s3test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// The credentials of a Gateway, and its bucket.
const (
	Access = "test"
	Secret = "testsecret"
	Bucket = "ids"
)

// A Gateway is a versitygw. Its methods are for one goroutine.
type Gateway struct {
	*proc.Process
	Address string
	Dir     string

	t testing.TB
}

// Start starts a Gateway with a bucket on a directory. Several may use one.
func Start(t testing.TB, dir string) *Gateway {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Join(dir, Bucket), 0o755))
	for range 5 { // another process may take a port in between
		g := &Gateway{Address: proc.FreeAddress(t), Dir: dir, t: t}
		g.Begin()
		if g.AwaitAnswer("http://"+g.Address, false) {
			return g
		}
		t.Logf("versitygw does not start: %s", g.Log())
	}
	t.Fatal("versitygw does not start")
	return nil
}

// Begin starts a Gateway that was killed. It does not wait until it answers.
func (g *Gateway) Begin() {
	g.t.Helper()
	g.Process = proc.Start(g.t, proc.Built(g.t, "versitygw.sh"), "--access", Access, "--secret", Secret, "--port",
		g.Address, "--quiet", "posix", g.Dir)
	g.t.Cleanup(g.Kill)
}
