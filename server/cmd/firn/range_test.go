//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/firnid/firn/server/internal/test/sqltest"
)

// TestPartitions inserts the IDs around the ends of months into the partitions
// that firn range prints.
func TestPartitions(t *testing.T) {
	server := sqltest.PostgreSQL(t)
	for layout, kind := range map[string]string{"default": "bigint", "twitter": "bigint", "uuidv7": "uuid"} {
		table := layout + "_orders"
		statements, stderr, code := runFirn(t, "range", "--layout", layout, "--from", "2026-11-05", "--to", "2027-01-01", "--partitions", "month", "--table", table)
		if code != exitFine {
			t.Fatal(stderr)
		}
		sql := "CREATE TABLE " + table + " (id " + kind + ") PARTITION BY RANGE (id);\n" + statements
		for _, month := range [][2]string{{"2026-11-01", "2026-12-01"}, {"2026-12-01", "2027-01-01"}} {
			ends, _, _ := runFirn(t, "range", "--layout", layout, "--from", month[0], "--to", month[1])
			f := strings.Fields(ends)
			sql += "INSERT INTO " + table + " VALUES ('" + f[1] + "'), ('" + f[3] + "');\n"
		}
		got := server.Query(sql + "SELECT tableoid::regclass FROM " + table + " ORDER BY id;")
		want := strings.Join([]string{table + "_2026_11", table + "_2026_11", table + "_2026_12", table + "_2026_12"}, "\n")
		if got != want {
			t.Errorf("%s: IDs are in %s, want %s", layout, got, want)
		}
	}
}
