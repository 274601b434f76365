//go:build unix

package sqlgen_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestDuckDB runs the macros over every type of column that DuckDB reads IDs
// into.
func TestDuckDB(t *testing.T) {
	nettest.Long(t)
	dir := t.TempDir()
	python := filepath.Join(dir, "bin/python")
	for _, c := range [][]string{{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "-q", "duckdb==2.0.1"}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("DuckDB cannot be installed here: %v: %v: %s", c, err, out)
		}
	}
	for _, text := range layouts {
		l := firn.MustParseLayout(text)
		sql, want := write(t, "duckdb", "firn", l)+";\n", []string(nil)
		kinds := []string{"BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"}
		for i, s := range samples(t, l) {
			if !strings.HasPrefix(s.id, "-") { // otherwise 2^63 and above
				sql += fmt.Sprintf("SELECT epoch_us(firn_time(id)), firn_node(id), firn_seq(id), firn_to_typed('order', id), firn_from_typed('order', '%s') FROM (SELECT %s::%s AS id);\n", s.typed, s.id, kinds[i%4])
				want = append(want, fmt.Sprintf("%d|%d|%d|%s|%s", s.parts.Time.UnixMicro(), s.parts.Node, s.parts.Seq, s.typed, s.id))
			}
		}
		for _, s := range spans(l) {
			const form = "2006-01-02 15:04:05.999"
			sql += fmt.Sprintf("SELECT firn_first('%s'), firn_last('%s');\n", s.from.Format(form), s.to.Format(form))
			want = append(want, s.lo+"|"+s.hi)
		}
		for _, wrong := range []string{"other_03887nf7a8003", "order_03887NF7A8003", "order_g3887nf7a8003", "order_03887nf7a8o03", "order_03887nf7a80031", "order_03887nf7a8003\n"} {
			sql += fmt.Sprintf("SELECT firn_from_typed('order', '%s');\n", wrong)
			want = append(want, "None")
		}
		cmd := exec.Command(python, "-c", "import duckdb, sys\nfor q in sys.stdin.read().split(';\\n'):\n  for row in duckdb.execute(q or 'FROM range(0)').fetchall() if q.strip() else []: print(*row, sep='|')")
		cmd.Stdin = strings.NewReader(sql)
		rows, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %.2000s", err, rows)
		}
		compare(t, l, string(rows), want)
	}
}
