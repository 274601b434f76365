//go:build unix

package e2e

import (
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/internal/test/s3test"
	"github.com/firnid/firn/server/internal/test/sqltest"
)

// testKilled has clients read and write keys at a URL whose server is killed
// and started again. Every answer is checked.
func testKilled(t *testing.T, kind, url string, kill func(*recorder)) {
	h := newRecorder(t, url)
	for kills := 0; kills < 8 || !h.happened(); kills++ {
		before := h.count("applied")
		must.Await(t, func() bool { return h.count("applied") >= before+50 }, "more is applied")
		kill(h)
	}
	h.check(kind)
}

func TestDatabasesKilled(t *testing.T) {
	for kind, start := range sqltest.Kinds() {
		t.Run(kind, func(t *testing.T) {
			server := start(t)
			testKilled(t, kind, server.URL("create=true"), func(h *recorder) {
				server.Kill()
				if kind == "mysql" { // it shows commits that are not on disk yet, see docs/protocol.md
					h.loses()
				}
				server.Start()
			})
		})
	}
}

// TestGatewaysKilled: two gateways serve one bucket by turns. New connections
// lead to the other one when one is killed.
func TestGatewaysKilled(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	one := s3test.Start(t, t.TempDir())
	two := s3test.Start(t, one.Dir)
	link := proc.NewLink(t, one.Address)
	testKilled(t, "a bucket", "s3://ids/history?path-style=true&endpoint=http://"+link.Address, func(*recorder) {
		link.Lead(two.Address)
		one.Kill()
		one.Begin()
		one, two = two, one
	})
}
