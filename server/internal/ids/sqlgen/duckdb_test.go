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
)

// TestDuckDB runs the expressions of docs/databases.md over every type of column
// that DuckDB reads IDs into.
func TestDuckDB(t *testing.T) {
	nettest.Long(t)
	dir := t.TempDir()
	python := filepath.Join(dir, "bin/python")
	for _, c := range [][]string{{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "-q", "duckdb==2.0.1"}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("DuckDB cannot be installed here: %v: %v: %s", c, err, out)
		}
	}
	page, err := os.ReadFile("../../../../docs/databases.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("\\| DuckDB \\| `(.*)` \\| `(.*)` \\| `(.*)` \\|").FindStringSubmatch(string(page))
	if row == nil {
		t.Fatal("the page has no row of DuckDB")
	}
	sql, want := "", []string(nil)
	for _, kind := range []string{"BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"} {
		for _, s := range samples(t, firn.Default()) {
			sql += fmt.Sprintf("SELECT epoch_us(%s), %s, %s FROM (SELECT %s::%s AS id)\n", row[1], row[2], row[3], s.id, kind)
			want = append(want, fmt.Sprintf("%d|%d|%d", s.parts.Time.UnixMicro(), s.parts.Node, s.parts.Seq))
		}
	}
	cmd := exec.Command(python, "-c", "import duckdb, sys\nfor q in sys.stdin: print(*duckdb.execute(q).fetchone(), sep='|')")
	cmd.Stdin = strings.NewReader(sql)
	rows, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.2000s", err, rows)
	}
	compare(t, firn.Default(), string(rows), want)
}
