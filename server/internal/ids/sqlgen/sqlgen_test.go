//go:build unix

package sqlgen_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/sqlgen"
	"github.com/firnid/firn/server/internal/test/sqltest"
	"github.com/firnid/firn/typed"
)

var layouts = []string{
	"default", "hazelcast", "snowcast", "flake-idgen", "lable", "lable,mode=time-sequential,cluster=3", "twitter", "sonyflake", "mastodon", "js53",
	"bits=const:2=1.time:20.const:3=5.time:21.node:4.seq:5.node:6.seq:3,unit=10ms,epoch=1960-01-01T00:00:00.5Z",
	"bits=node:5.time:41.seq:10",
}

var wideLayouts = []string{
	"uuidv7", "ulid", "bits=const:4=9.time:20.const:4=15.time:24.rand:8.node:10.seq:12.rand:40.const:4=3", "bits=seq:5.time~:40.seq:3.node:30.time:4.const:46=0x200000000003",
}

// A sample is an ID, and what SQL must make of it.
type sample struct {
	parts firn.Parts
	typed string
	id    string // a number, negative from 2^63 on, or a UUID
}

// samples returns IDs of a layout with random and extreme parts.
func samples(t *testing.T, l firn.Layout) (list []sample) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		p := firn.Parts{Time: l.Epoch().Add(time.Duration(i/20*r.IntN(1e6)) * l.Unit()), Node: r.Uint64() & l.MaxNode(), Seq: r.Uint64() & l.MaxSeq()}
		switch i {
		case 1:
			p = firn.Parts{Time: l.Last(), Node: l.MaxNode(), Seq: l.MaxSeq()}
		case 2:
			p.Time = time.Date(2026, 11, 20, 22, 0, 7, 226_000_000, time.UTC)
		}
		var s sample
		if l.Bits() == 128 {
			id := must.Get(l.Compose128(p))(t)
			s.typed, s.id = typed.Text("order", id), string(firn.UUID.Append128(nil, id))
			s.parts = must.Get(l.Decompose128(id))(t)
		} else {
			id := must.Get(l.Compose(p))(t)
			s.typed, s.id = typed.Text("order", id), fmt.Sprint(int64(id))
			s.parts = must.Get(l.Decompose(id))(t)
		}
		list = append(list, s)
	}
	return list
}

// A span is a time range with its first and last ID.
type span struct {
	from, to time.Time
	lo, hi   string
}

// spans returns time ranges of a layout; none if IDs do not sort by time.
func spans(l firn.Layout) (list []span) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 30 {
		s := span{from: l.Epoch().Add(time.Duration(r.Int64N(int64(10 * 365 * 24 * time.Hour))))}
		s.to = s.from.Add(time.Duration(r.Int64N(int64(time.Hour))))
		switch i {
		case 1:
			s.from, s.to = l.Epoch().Add(-time.Hour), l.Epoch().Add(l.Unit())
		case 2:
			s.from, s.to = l.Epoch(), l.Epoch().Add(time.Millisecond)
		}
		// SQLite has milliseconds.
		s.from, s.to = s.from.Truncate(time.Millisecond), s.to.Truncate(time.Millisecond).Add(time.Millisecond)
		if l.Bits() == 128 {
			lo, hi, err := l.Range128(s.from, s.to)
			if err != nil {
				continue
			}
			s.lo, s.hi = firn.UUID.Text128(lo), firn.UUID.Text128(hi)
		} else {
			lo, hi, err := l.Range(s.from, s.to)
			if err != nil {
				continue
			}
			s.lo, s.hi = lo.String(), hi.String()
		}
		list = append(list, s)
	}
	return list
}

func write(t *testing.T, database, name string, l firn.Layout) string {
	t.Helper()
	var b strings.Builder
	if err := sqlgen.Write(&b, database, name, l); err != nil {
		t.Fatalf("%s: %v", l, err)
	}
	return b.String()
}

// compare compares rows with those wanted.
func compare(t *testing.T, l firn.Layout, rows string, want []string) {
	t.Helper()
	got := strings.Split(strings.ReplaceAll(strings.TrimSpace(rows), "\t", "|"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d: %.2000s", l, len(got), len(want), rows)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: row %d is %s, want %s", l, i, got[i], want[i])
		}
	}
}

func testLayouts(t *testing.T, server *sqltest.Server) {
	for _, text := range append(layouts, wideLayouts...) {
		l := firn.MustParseLayout(text)
		server.Exec("DROP SCHEMA public CASCADE; CREATE SCHEMA public;" + write(t, "postgres", "firn", l))
		var sql strings.Builder
		var want []string
		for _, s := range samples(t, l) {
			fmt.Fprintf(&sql, "SELECT firn_micros(x), (extract(epoch FROM firn_time(x)) * 1000000)::bigint, firn_node(x), firn_seq(x), firn_to_typed('order', x), firn_from_typed('order', '%s') FROM (SELECT '%s'::%s AS x) AS s;\n",
				s.typed, s.id, map[int]string{64: "bigint", 128: "uuid"}[l.Bits()])
			micros := s.parts.Time.UnixMicro()
			want = append(want, fmt.Sprintf("%d|%d|%d|%d|%s|%s", micros, micros, s.parts.Node, s.parts.Seq, s.typed, s.id))
		}
		for _, s := range spans(l) {
			fmt.Fprintf(&sql, "SELECT firn_first('%s'), firn_last('%s');\n", s.from.Format(time.RFC3339Nano), s.to.Format(time.RFC3339Nano))
			want = append(want, s.lo+"|"+s.hi)
		}
		compare(t, l, server.Query(sql.String()), want)
	}

	server.Exec("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE EXTENSION pgcrypto;" + write(t, "postgres", "firn", firn.Default()))
	for _, danish := range []string{"da-x-icu", "da_DK"} {
		if server.Query("SELECT count(*) FROM pg_collation WHERE collname = '"+danish+"'") == "0" {
			continue // glibc's locales are often not installed
		}
		inOrder(t, server.Query(rowsInOrder("firn_to_typed('order', %d)", `COLLATE "C"`, `COLLATE "`+danish+`"`)))
	}
	null := server.Query(`SELECT num_nulls(firn_first('2096-01-01Z'), firn_last('2026-01-01Z'), firn_last('2020-01-01Z'), firn_from_typed('order', 'other_03887nf7a8003'),
		firn_from_typed('order', 'order_03887NF7A8003'), firn_from_typed('order', 'order_g3887nf7a8003'), firn_from_typed('order', 'order_03887nf7a800'), firn_from_typed('order', 'order_03887nf7a8o03'),
		firn_veil(0, '\x2b7e151628aed2a6abf7158809cf4f3c', 'orders'), firn_unveil(-1, '\x2b7e151628aed2a6abf7158809cf4f3c', 'orders'))`)
	if null != "10" {
		t.Errorf("%s of 10 impossible IDs, times and texts give NULL", null)
	}

	// A bigint has no IDs from 2^63 on, which begin in 2039.
	server.Exec(write(t, "postgres", "flake", firn.MustParseLayout("flake-idgen")))
	if got := server.Query("SELECT flake_last('2050-01-01Z'), flake_first('2050-01-01Z') IS NULL"); got != "9223372036854775807|t" {
		t.Errorf("the last ID before 2050, and whether there is one after it: %s, want 9223372036854775807|t", got)
	}
}

// testVeil runs the 200 vectors of docs/veil.md.
func testVeil(t *testing.T, server *sqltest.Server) {
	text := must.Get(os.ReadFile("../../../../veil/testdata/vectors.json"))(t)
	var vectors []struct {
		Bits, Number                     int
		Key, Sequencer, ID, Veiled, Text string
	}
	must.Do(t, json.Unmarshal(text, &vectors))
	server.Exec("CREATE EXTENSION IF NOT EXISTS pgcrypto")
	for bits, layout := range map[int]string{53: "js53", 63: "default", 64: "flake-idgen", 122: "uuidv7"} {
		server.Exec(write(t, "postgres", fmt.Sprintf("v%d", bits), firn.MustParseLayout(layout)))
	}
	var sql strings.Builder
	var want []string
	signed := func(text string) string {
		if id, err := firn.ParseID(text); err == nil {
			return fmt.Sprint(int64(id))
		}
		return text
	}
	for _, v := range vectors {
		id, veiled := signed(v.ID), signed(v.Veiled)
		name, args := fmt.Sprintf("v%d", v.Bits), fmt.Sprintf(`'\x%s', '%s'`, v.Key, v.Sequencer)
		fmt.Fprintf(&sql, "SELECT %[1]s_veil('%[2]s', %[3]s), %[1]s_unveil('%[4]s', %[3]s), %[1]s_to_typed('v%[5]d', '%[4]s'), %[1]s_from_typed('v%[5]d', '%[6]s');\n", name, id, args, veiled, v.Number, v.Text)
		want = append(want, fmt.Sprintf("%s|%s|%s|%s", veiled, id, v.Text, veiled))
	}
	if len(want) != 200 {
		t.Errorf("%d vectors, want 200", len(want))
	}
	compare(t, firn.Layout{}, server.Query(sql.String()), want)

	short := server.Query(`DO $$ BEGIN PERFORM v63_veil(1, '\x0102', 'orders'); EXCEPTION WHEN OTHERS THEN CREATE TABLE refused AS SELECT SQLERRM; END $$; SELECT * FROM refused`)
	if short != "the key has 2 bytes: it must have 16, 24 or 32" {
		t.Errorf("a key of 2 bytes: %q", short)
	}
}

// rowsInOrder is SQL that stores the texts of 2,000 IDs of two milliseconds, an
// hour apart, in columns of two collations, and counts for each the rows that
// are not where their IDs are.
func rowsInOrder(call, binary, danish string) string {
	sql := fmt.Sprintf("CREATE TEMPORARY TABLE texts (id bigint PRIMARY KEY, %s);\n", strings.Join([]string{
		"typed varchar(77) " + binary, "hex varchar(16) " + binary, "b32 varchar(13) " + binary, "danish varchar(77) " + danish}, ", "))
	for i := range 2000 {
		id := firn.ID(117383499776000003 + i*7_919_003)
		text := func(e firn.Format) string { return e.Text(id) }
		sql += fmt.Sprintf("INSERT INTO texts VALUES (%d, %s, '%s', '%s', %[2]s);\n", id, fmt.Sprintf(call, id), text(firn.Hex), text(firn.Base32))
	}
	var counts []string
	for _, column := range []string{"typed", "hex", "b32", "danish"} {
		counts = append(counts, fmt.Sprintf("SUM(CASE WHEN n_%s <> n THEN 1 ELSE 0 END)", column))
	}
	sql += "SELECT " + strings.Join(counts, ", ") + ` FROM (SELECT row_number() OVER (ORDER BY id) AS n, row_number() OVER (ORDER BY typed) AS n_typed,
		row_number() OVER (ORDER BY hex) AS n_hex, row_number() OVER (ORDER BY b32) AS n_b32, row_number() OVER (ORDER BY danish) AS n_danish FROM texts) AS rows_in_order;`
	return sql
}

// inOrder wants the texts in order by the collation that the pages name, and
// none by Danish rules, where aa is the last letter.
func inOrder(t *testing.T, counts string) {
	t.Helper()
	var typed, hex, base32, danish int
	if _, err := fmt.Sscan(strings.ReplaceAll(counts, "|", " "), &typed, &hex, &base32, &danish); err != nil || typed+hex+base32 > 0 || danish == 0 {
		t.Errorf("of 2,000 typed texts, hex, base32 and typed texts in Danish, %q are out of order (%v); want 0, 0, 0 and some", counts, err)
	}
}

func TestMySQL(t *testing.T) {
	server := sqltest.MariaDB(t)
	use := "USE " + sqltest.Database + ";\n"
	for _, text := range layouts {
		l := firn.MustParseLayout(text)
		server.Exec(use + write(t, "mysql", "firn", l))
		sql, want := use, []string(nil)
		for _, s := range samples(t, l) {
			if s.parts.Time.Year() > 9999 {
				continue // an error in MySQL
			}
			id := unsigned(t, s.id)
			sql += fmt.Sprintf("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', firn_time(%[1]s)), firn_node(%[1]s), firn_seq(%[1]s), firn_to_typed('order', %[1]s), firn_from_typed('order', '%[2]s');\n", id, s.typed)
			want = append(want, fmt.Sprintf("%d|%d|%d|%s|%s", s.parts.Time.UnixMicro(), s.parts.Node, s.parts.Seq, s.typed, id))
		}
		for _, s := range spans(l) {
			const form = "2006-01-02 15:04:05.999"
			sql += fmt.Sprintf("SELECT firn_first('%s'), firn_last('%s');\n", s.from.Format(form), s.to.Format(form))
			want = append(want, s.lo+"|"+s.hi)
		}
		compare(t, l, server.Query(sql), want)
	}

	server.Exec(use + write(t, "mysql", "firn", firn.Default()))
	inOrder(t, server.Query(use+rowsInOrder("firn_to_typed('order', %d)", "CHARACTER SET ascii COLLATE ascii_bin", "COLLATE utf8mb4_danish_ci")))
	for _, null := range []string{
		"firn_first('2096-01-01')", "firn_last('2026-01-01')", "firn_last('2020-01-01')", "firn_from_typed('order', 'other_03887nf7a8003')", "firn_from_typed('order', 'Order_03887nf7a8003')",
		"firn_from_typed('order', 'order_03887NF7A8003')", "firn_from_typed('order', 'order_g3887nf7a8003')", "firn_from_typed('order', 'order_03887nf7a8o03')", `firn_from_typed('order', 'order_03887nf7a8003\n')`,
	} {
		if got := server.Query(use + "SELECT " + null); got != "NULL" {
			t.Errorf("%s is %s, want NULL", null, got)
		}
	}
}

// unsigned returns the ID of a signed number.
func unsigned(t *testing.T, text string) string {
	t.Helper()
	var n int64
	must.Get(fmt.Sscan(text, &n))(t)
	return firn.ID(n).String()
}

func TestSQLite(t *testing.T) {
	sqlite := sqltest.Find(t, "sqlite3", "sqlite3")
	for _, text := range layouts {
		l := firn.MustParseLayout(text)
		var columns, conditions []string
		for line := range strings.SplitSeq(strings.ReplaceAll(write(t, "sqlite", "", l), "\n  ", " "), "\n") {
			if rest, ok := strings.CutPrefix(line, "SELECT * "); ok {
				conditions = append(conditions, rest)
			} else {
				columns = append(columns, line)
			}
		}
		sql, want := "CREATE TABLE orders (id INTEGER PRIMARY KEY);"+strings.Join(columns, "\n"), []string(nil)
		byText := conditions[len(conditions)-1]
		for _, s := range samples(t, l) {
			sql += fmt.Sprintf("INSERT OR IGNORE INTO orders (id) VALUES (%s);\n", s.id)
			sql += "SELECT id_time, id_node, id_seq, 'order_' || id_base32, id " + strings.NewReplacer(":typed", "'"+s.typed+"'", ":prefix", "'order'").Replace(byText) + "\n"
			stamp := s.parts.Time.Format("2006-01-02T15:04:05.000Z")
			if s.parts.Time.Year() > 9999 {
				stamp = ""
			}
			want = append(want, fmt.Sprintf("%s|%d|%d|%s|%s", stamp, s.parts.Node, s.parts.Seq, s.typed, s.id))
		}
		sql += "DELETE FROM orders;\n"
		for _, s := range spans(l) {
			sql += fmt.Sprintf("INSERT INTO orders (id) VALUES (%[1]s), (%[2]s) ON CONFLICT DO NOTHING;\nINSERT INTO orders (id) VALUES (%[1]s - 1), (%[2]s + 1);\n", s.lo, s.hi)
			sql += "SELECT min(id), max(id) " + strings.NewReplacer(":from", fmt.Sprint(s.from.UnixMilli()), ":to", fmt.Sprint(s.to.UnixMilli())).Replace(conditions[0]) + "\nDELETE FROM orders;\n"
			want = append(want, s.lo+"|"+s.hi)
		}
		for _, wrong := range []string{"other_03887nf7a8003", "order_03887NF7A8003", "order_g3887nf7a8003", "order_03887nf7a8o03", "order_03887nf7a80031"} {
			sql += "INSERT OR IGNORE INTO orders (id) VALUES (117383499776000003);\n"
			sql += "SELECT count(*) " + strings.NewReplacer(":typed", "'"+wrong+"'", ":prefix", "'order'").Replace(byText) + "\n"
			want = append(want, "0")
		}
		cmd := exec.CommandContext(t.Context(), sqlite, "-bail")
		cmd.Stdin = strings.NewReader(sql)
		rows, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %.2000s", l, err, rows)
		}
		compare(t, l, string(rows), want)
	}
}

// testPage runs the SQL of docs/databases.md.
func testPage(t *testing.T, server *sqltest.Server) {
	page := must.Get(os.ReadFile("../../../../docs/databases.md"))(t)
	server.Exec(write(t, "postgres", "firn", firn.Default()) + "CREATE TABLE orders (id bigint PRIMARY KEY); INSERT INTO orders VALUES (117383499776000003);")
	var sql string
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		sql += block[1]
	}
	const key = "'\\x2b7e151628aed2a6abf7158809cf4f3cef4359d8d580aa4f7f036d6f04fc6a94'"
	sql += "EXECUTE unveil (" + key + ", 'v1_7p4a6ejb9tjwz'); EXECUTE veil (" + key + ");"
	const id = "117383499776000003"
	compare(t, firn.Default(), server.Query("SET timezone = 'UTC'; SET client_min_messages = warning;"+sql), []string{id + "|2026-11-20 22:00:07.226+00|576|3|order_03887nf7a8003", id, id, id, "v1_7p4a6ejb9tjwz"})
}

// TestErrors wants a reason for layouts that a database cannot read.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ database, layout, want string }{
		{"mysql", "uuidv7", "only PostgreSQL"},
		{"sqlite", "ulid", "only PostgreSQL"},
		{"postgres", "xid", "have 96 bits"},
		{"postgres", "boundary", "time field is too wide"},
		{"postgres", "bits=time:50.seq:4,unit=100ns", "whole multiples of 1µs"},
		{"sqlite", "bits=time:50.seq:4,unit=100us", "whole multiples of 1ms"},
		{"postgres", "bits=const:1=1.time:41.seq:22", "2^63 and above"},
	} {
		err := sqlgen.Write(io.Discard, c.database, "firn", firn.MustParseLayout(c.layout))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: error %v, want one with %q", c.layout, c.database, err, c.want)
		}
	}
}
