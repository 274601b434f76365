//go:build unix

package e2e

import (
	"testing"

	"github.com/firnid/firn/server/internal/test/sqltest"
)

// TestDatabasesKilled: clients read and write keys in a database that is killed
// and started again. Every answer is checked.
func TestDatabasesKilled(t *testing.T) {
	for kind, start := range sqltest.Kinds() {
		t.Run(kind, func(t *testing.T) {
			server := start(t)
			h := newRecorder(t, server.URL("create=true"))
			for kills := 0; kills < 8 || !h.happened(); kills++ {
				before := h.count("applied")
				until(t, "more is applied", func() bool { return h.count("applied") >= before+50 })
				server.Kill()
				if kind == "mysql" { // it shows commits that are not on disk yet, see docs/protocol.md
					h.loses()
				}
				server.Start()
			}
			h.check(kind)
		})
	}
}
