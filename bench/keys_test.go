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

// A keyKind is a type of a primary key, and the IDs in it.
type keyKind struct {
	name, column string
	layout       string // empty for random UUIDs
	evenBits     int
	ordered      bool // IDs of a time range are a range of the index
}

// BenchmarkServerKeys measures primary keys in a PostgreSQL of this machine,
// named by PGHOST and its like. Figures are medians.
func BenchmarkServerKeys(b *testing.B) {
	if os.Getenv("PGHOST") == "" {
		b.Skip("needs a PostgreSQL: pg_virtualenv go test . -run '^$' -bench ServerKeys -timeout 2h")
	}
	db := must(pgx.Connect(b.Context(), ""))
	defer db.Close(context.WithoutCancel(b.Context()))
	for _, kind := range []keyKind{
		{"bigint", "bigint", "default", 0, true},
		{"bigint-even", "bigint", "default", 4, true},
		{"bigint-spread", "bigint", "lable,mode=spread", 0, false},
		{"uuidv7", "uuid", "uuidv7", 0, true},
		{"uuidv4", "uuid", "", 0, false},
	} {
		b.Run(kind.name, func(b *testing.B) {
			figures := make(map[string][]float64)
			for range max(b.N, rounds) {
				for name, value := range kind.measure(b, db) {
					figures[name] = append(figures[name], value)
				}
			}
			for name, all := range figures {
				b.ReportMetric(median(all), name)
			}
			b.ReportMetric(0, "ns/op") // leaves it out
		})
	}
}

// measure fills a table with ten days of rows. It returns the processor time of
// PostgreSQL's process, MB, and the pages of the index with the keys of an hour.
func (k keyKind) measure(b *testing.B, db *pgx.Conn) map[string]float64 {
	ctx := b.Context()
	exec := func(sql string) { must(db.Exec(ctx, sql)) }
	number := func(sql string, args ...any) (x float64) {
		if err := db.QueryRow(ctx, sql, args...).Scan(&x); err != nil {
			b.Fatal(err)
		}
		return x
	}
	exec(`DROP TABLE IF EXISTS orders`)
	exec(`CREATE TABLE orders (id ` + k.column + ` PRIMARY KEY, customer ` + k.column + ` NOT NULL, amount bigint NOT NULL) WITH (autovacuum_enabled = off)`)
	exec(`SET max_parallel_maintenance_workers = 0`)
	exec(`CHECKPOINT`)
	if err := db.DeallocateAll(ctx); err != nil { // statements of another column type
		b.Fatal(err)
	}
	pid := int(number(`SELECT pg_backend_pid()`))
	const wal = `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8`

	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	hourFrom := now.AddDate(0, 0, 5)
	next := k.source(func() time.Time { return now })
	customer := next()
	var hour []any // the keys of an hour
	cpuBefore, walBefore := cpu(pid), number(wal)
	for row := 0; row < *keyRows; {
		batch := make([][]any, 0, 100_000)
		for ; row < *keyRows && len(batch) < cap(batch); row++ {
			now = now.Add(10 * 24 * time.Hour / time.Duration(*keyRows))
			id := next()
			batch = append(batch, []any{id, customer, int64(row)})
			if !now.Before(hourFrom) && now.Before(hourFrom.Add(time.Hour)) {
				hour = append(hour, id)
			}
		}
		must(db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer", "amount"}, pgx.CopyFromRows(batch)))
	}
	got := map[string]float64{"load-cpu-s": (cpu(pid) - cpuBefore).Seconds()}
	got["wal-MB"] = (number(wal) - walBefore) / 1e6
	got["table-MB"] = number(`SELECT pg_table_size('orders') / 1e6::float8`)
	got["index-MB"] = number(`SELECT pg_indexes_size('orders') / 1e6::float8`)
	exec(`VACUUM ANALYZE orders`)
	cpuBefore = cpu(pid)
	exec(`REINDEX INDEX orders_pkey`)
	got["build-cpu-s"] = (cpu(pid) - cpuBefore).Seconds()

	// After REINDEX, no page of the index is in PostgreSQL's cache.
	var plan []struct{ Plan map[string]any }
	explain := `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM orders WHERE id = ANY($1::` + k.column + `[])`
	if err := db.QueryRow(ctx, explain, hour).Scan(&plan); err != nil {
		b.Fatal(err)
	}
	got["pages-of-hour"] = plan[0].Plan["Shared Read Blocks"].(float64)
	if k.ordered {
		const reads = 20
		cpuBefore = cpu(pid)
		for range reads {
			n := number(`SELECT count(amount) FROM orders WHERE id BETWEEN $1 AND $2`, hour[0], hour[len(hour)-1])
			if int(n) != len(hour) {
				b.Fatalf("%s: %v rows in an hour, want %d", k.name, n, len(hour))
			}
		}
		got["range-cpu-ms"] = (cpu(pid) - cpuBefore).Seconds() * 1000 / reads
	}
	if k.column == "bigint" {
		got["fullest-of-16-shards"] = number(`SELECT max(n) / $1::float8 FROM (SELECT count(*) AS n FROM orders GROUP BY id % 16) AS shards`, *keyRows)
	}
	return got
}

// source returns a function that makes keys as pgx takes them.
func (k keyKind) source(now func() time.Time) func() any {
	if k.layout == "" {
		return func() any { return [16]byte(uuid.New()) }
	}
	layout, grant := firn.MustParseLayout(k.layout), firn.Grant{Node: 1, From: time.Unix(1, 0)}
	o := &firn.Options{Now: now, EvenLowBits: k.evenBits}
	if k.column == "uuid" {
		g := must(firn.NewGenerator128(layout, grant, o))
		return func() any { return [16]byte(must(g.TryNext())) }
	}
	g := must(firn.NewGenerator(layout, grant, o))
	return func() any { return int64(must(g.TryNext())) }
}
