package bench

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/firnid/firn"
)

var (
	keyRows   = flag.Int("keys-rows", 10_000_000, "rows of a table in BenchmarkServerKeys")
	keyRounds = flag.Int("keys-rounds", 3, "rounds of BenchmarkServerKeys")
)

// The rows of BenchmarkServerKeys are made over ten days, at an even rate.
const keyDays = 10 * 24 * time.Hour

// fullest is the largest part of the rows that one of 16 shards has, by id % 16.
const fullest = "of-fullest-shard"

// A keyKind is a column type and what fills it.
type keyKind struct {
	name, column string
	layout       string // empty for random UUIDs
	evenBits     int
}

// BenchmarkServerKeys measures primary keys in the PostgreSQL that PGHOST and
// its like name. Every round fills a table with each kind in turn. Figures are
// medians; x-… are median ratios to the first kind in the same round.
func BenchmarkServerKeys(b *testing.B) {
	if os.Getenv("PGHOST") == "" {
		b.Skip("needs a PostgreSQL: pg_virtualenv go test . -run '^$' -bench ServerKeys -timeout 2h")
	}
	db := must(pgx.Connect(b.Context(), ""))
	defer db.Close(context.WithoutCancel(b.Context()))
	kinds := []keyKind{
		{"bigint", "bigint", "default", 0},
		{"bigint-even", "bigint", "default", 4},
		{"bigint-spread", "bigint", "lable,mode=spread", 0},
		{"uuidv7", "uuid", "uuidv7", 0},
		{"uuidv4", "uuid", "", 0},
	}
	figures := make([]map[string][]float64, len(kinds))
	for range *keyRounds {
		var reference map[string]float64
		for i, kind := range kinds {
			if figures[i] == nil {
				figures[i] = make(map[string][]float64)
			}
			got := kind.measure(b, db)
			if i == 0 {
				reference = got
			}
			for name, value := range got {
				figures[i][name] = append(figures[i][name], value)
				if i > 0 && name != fullest {
					what, _, _ := strings.Cut(name, "-")
					figures[i]["x-"+what] = append(figures[i]["x-"+what], value/reference[name])
				}
			}
		}
	}
	for i, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			for name, all := range figures[i] {
				b.ReportMetric(median(all), name)
			}
			b.ReportMetric(0, "ns/op") // leaves it out
		})
	}
}

// measure fills a table and returns seconds, MB and index pages.
func (k keyKind) measure(b *testing.B, db *pgx.Conn) map[string]float64 {
	ctx := b.Context()
	exec := func(sql string) time.Duration {
		begin := time.Now()
		must(db.Exec(ctx, sql))
		return time.Since(begin)
	}
	number := func(sql string, args ...any) (x float64) {
		if err := db.QueryRow(ctx, sql, args...).Scan(&x); err != nil {
			b.Fatal(err)
		}
		return x
	}
	const wal = `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8`
	exec(`DROP TABLE IF EXISTS orders`)
	exec(`CREATE TABLE orders (id ` + k.column + ` PRIMARY KEY, customer ` + k.column + ` NOT NULL, amount bigint NOT NULL) WITH (autovacuum_enabled = off)`)
	exec(`CHECKPOINT`)
	if err := db.DeallocateAll(ctx); err != nil { // those of another column type
		b.Fatal(err)
	}

	from := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	hourFrom := from.Add(keyDays / 2)
	hourTo := hourFrom.Add(time.Hour)
	var now time.Time
	next := k.source(func() time.Time { return now })
	var first, last any
	var hour []any // the keys of an hour
	customers := make([]any, 1000)
	for i := range customers {
		now = from.Add(time.Duration(i-len(customers)) * time.Millisecond)
		customers[i] = next()
	}
	row := 0
	rows := func(end int) pgx.CopyFromSource {
		return pgx.CopyFromFunc(func() ([]any, error) {
			if row == end {
				return nil, nil
			}
			now = from.Add(time.Duration(row) * (keyDays / time.Duration(*keyRows)))
			id := next()
			if !now.Before(hourFrom) && now.Before(hourTo) {
				hour = append(hour, id)
			}
			row++
			return []any{id, customers[row%len(customers)], int64(row)}, nil
		})
	}
	begin, walBefore := time.Now(), number(wal)
	for row < *keyRows {
		must(db.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer", "amount"}, rows(min(row+100_000, *keyRows))))
	}
	got := map[string]float64{"load-s": time.Since(begin).Seconds()}
	got["wal-MB"] = (number(wal) - walBefore) / 1e6
	got["table-MB"] = number(`SELECT pg_table_size('orders') / 1e6::float8`)
	got["index-MB"] = number(`SELECT pg_indexes_size('orders') / 1e6::float8`)
	exec(`VACUUM ANALYZE orders`)
	got["build-s"] = exec(`REINDEX INDEX orders_pkey`).Seconds()

	// After REINDEX, no page of the index is in PostgreSQL's cache.
	var plan []struct {
		Plan map[string]any
	}
	explain := `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM orders WHERE id = ANY($1::` + k.column + `[])`
	if err := db.QueryRow(ctx, explain, hour).Scan(&plan); err != nil {
		b.Fatal(err)
	}
	got["touched-pages"] = plan[0].Plan["Shared Read Blocks"].(float64)
	if k.layout != "" && k.name != "bigint-spread" {
		first, last = hour[0], hour[len(hour)-1]
		var times []float64
		for range 9 {
			begin := time.Now()
			if n := number(`SELECT count(amount) FROM orders WHERE id BETWEEN $1 AND $2`, first, last); int(n) != len(hour) {
				b.Fatalf("%s: %v rows in an hour, want %d", k.name, n, len(hour))
			}
			times = append(times, time.Since(begin).Seconds()*1000)
		}
		got["range-ms"] = median(times)
	}
	if k.column == "bigint" {
		got[fullest] = number(`SELECT max(n) / $1::float8 FROM (SELECT count(*) AS n FROM orders GROUP BY id % 16) AS shards`, *keyRows)
	}
	return got
}

// source returns a function that makes keys as pgx takes them.
func (k keyKind) source(now func() time.Time) func() any {
	o := &firn.Options{Now: now, EvenLowBits: k.evenBits}
	grant := firn.Grant{Node: 1, From: time.Unix(1, 0)}
	switch {
	case k.layout == "":
		return func() any { return [16]byte(uuid.New()) }
	case k.column == "uuid":
		g := must(firn.NewGenerator128(firn.MustParseLayout(k.layout), grant, o))
		return func() any { return [16]byte(must(g.TryNext())) }
	default:
		g := must(firn.NewGenerator(firn.MustParseLayout(k.layout), grant, o))
		return func() any { return int64(must(g.TryNext())) }
	}
}
