//go:build linux

package bench

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/firnid/firn"
)

var keyRows = flag.Int("keys-rows", 10_000_000, "rows of a table in BenchmarkServerKeys")

// A keyKind is a type of a primary key, and the IDs in it. The layout is empty
// for random UUIDs.
type keyKind struct{ name, column, layout string }

// BenchmarkServerKeys measures primary keys in a PostgreSQL of this machine,
// named by PGHOST and its like. Figures are medians.
func BenchmarkServerKeys(b *testing.B) {
	if os.Getenv("PGHOST") == "" {
		b.Skip("needs a PostgreSQL: pg_virtualenv go test . -run '^$' -bench ServerKeys -timeout 2h")
	}
	db := must(pgx.Connect(b.Context(), ""))
	defer db.Close(context.WithoutCancel(b.Context()))
	for _, kind := range []keyKind{
		{"bigint", "bigint", "default"},
		{"bigint-spread", "bigint", "lable,mode=spread"},
		{"uuidv7", "uuid", "uuidv7"},
		{"uuidv4", "uuid", ""},
	} {
		b.Run(kind.name, func(b *testing.B) {
			var seconds, megabytes []float64
			for range max(b.N, rounds) {
				cpu, index := kind.load(b, db)
				seconds, megabytes = append(seconds, cpu.Seconds()), append(megabytes, index)
			}
			b.ReportMetric(0, "ns/op") // leaves it out
			b.ReportMetric(median(seconds), "load-cpu-s")
			b.ReportMetric(median(megabytes), "index-MB")
		})
	}
}

// load fills a table with ten days of rows, and returns the processor time of
// PostgreSQL's process, and the MB of the index.
func (k keyKind) load(b *testing.B, db *pgx.Conn) (took time.Duration, megabytes float64) {
	ctx := b.Context()
	must(db.Exec(ctx, `DROP TABLE IF EXISTS orders`))
	must(db.Exec(ctx, `CREATE TABLE orders (id `+k.column+` PRIMARY KEY, customer `+k.column+` NOT NULL, amount bigint NOT NULL) WITH (autovacuum_enabled = off)`))
	must(db.Exec(ctx, `CHECKPOINT`))
	must(0, db.DeallocateAll(ctx)) // statements of another column type
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	next := k.source(func() time.Time { return now })
	customer := next()
	pid := int(db.PgConn().PID())
	before := cpu(pid)
	for row := 0; row < *keyRows; {
		batch := make([][]any, 0, 100_000)
		for ; row < *keyRows && len(batch) < cap(batch); row++ {
			now = now.Add(10 * 24 * time.Hour / time.Duration(*keyRows))
			batch = append(batch, []any{next(), customer, int64(row)})
		}
		must(db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer", "amount"}, pgx.CopyFromRows(batch)))
	}
	took = cpu(pid) - before
	must(0, db.QueryRow(ctx, `SELECT pg_indexes_size('orders') / 1e6::float8`).Scan(&megabytes))
	return took, megabytes
}

// source returns a function that makes keys as pgx takes them.
func (k keyKind) source(now func() time.Time) func() any {
	if k.layout == "" {
		return func() any { return [16]byte(uuid.New()) }
	}
	layout, grant := firn.MustParseLayout(k.layout), firn.Grant{Node: 1, From: time.Unix(1, 0)}
	o := &firn.Options{Now: now}
	if k.column == "uuid" {
		g := must(firn.NewGenerator128(layout, grant, o))
		return func() any { return [16]byte(must(g.TryNext())) }
	}
	g := must(firn.NewGenerator(layout, grant, o))
	return func() any { return int64(must(g.TryNext())) }
}
