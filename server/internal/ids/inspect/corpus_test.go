package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// corpusNow is an hour after the corpus was made.
var corpusNow = time.Date(2026, 11, 22, 12, 10, 0, 0, time.UTC)

// corpus returns the IDs of testdata/corpus by origin, and numbers that no
// library has made.
func corpus(t testing.TB) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil || len(files) < 16 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		_, ids, _ := strings.Cut(string(text), "\n")
		all[strings.TrimSuffix(filepath.Base(file), ".txt")] = strings.Fields(ids)
	}
	r := rand.New(rand.NewPCG(5, 6))
	year := uint64(365.25 * 86400)
	sec := uint64(corpusNow.Unix())
	counter := 1_000_000 * r.Uint64N(9000)
	for _, row := range []struct {
		origin string
		number func() uint64
	}{
		{"random of 63 bits", func() uint64 { return r.Uint64() >> 1 }},
		{"random of 64 bits", r.Uint64},
		{"Unix seconds", func() uint64 { return sec - r.Uint64N(8*year) }},
		{"Unix milliseconds", func() uint64 { return sec*1e3 - r.Uint64N(8e3*year) }},
		{"Unix microseconds", func() uint64 { return sec*1e6 - r.Uint64N(8e6*year) }},
		{"Unix nanoseconds", func() uint64 { return sec*1e9 - r.Uint64N(8e9*year) }},
		{"a database sequence", func() uint64 { counter += 1 + r.Uint64N(3); return counter }},
		{"amounts", func() uint64 { return r.Uint64N(1 << r.Uint64N(50)) }},
	} {
		for range 1000 {
			all[row.origin] = append(all[row.origin], strconv.FormatUint(row.number(), 10))
		}
	}
	return all
}

// tsid is the layout of tsid-creator.
const tsid = "bits=time:42.node:10.seq:12,unit=1ms,epoch=2020-01-01T00:00:00Z"

// TestCorpus reads IDs of real libraries without knowing their layouts: one by
// one, and as a column. One ID cannot always tell apart layouts with the same
// bits; then the right one must be likely. The log has the confusion matrix.
func TestCorpus(t *testing.T) {
	all := corpus(t)
	rows := []struct {
		origin, name  string  // "none" if no known layout made them
		first, likely float64 // first is below 0 if one ID alone says little
		column        bool    // as a column, the right layout is found
	}{
		{"bwmarrin", "twitter", 0.6, 0.9, true},
		{"twitter", "twitter", 0.8, 0.9, true},
		{"discord", "discord", 0.7, 0.8, true},
		{"sonyflake", "sonyflake", 0.9, 0.9, true},
		{"sonyflake2", "sonyflake,epoch=2025-01-01T00:00:00Z", 0.7, 0.9, true},
		{"flake-idgen", "flake-idgen", 1, 1, true},
		{"hazelcast", "hazelcast", 0.8, 0.85, true},
		// 22 equally probable bits make one number of tsid-creator look random.
		{"tsid", tsid, 0, 0, true},
		{"tsid-text", tsid, 0.9, 0.9, true},
		// Layouts of one split differ in their epochs alone: one number may be of each.
		{"yitter", otherLayouts[2].layout, -1, 0, true}, {"seata", otherLayouts[3].layout, -1, 0, true}, {"cosid", otherLayouts[4].layout, -1, 0, true},
		{"shardingsphere", otherLayouts[5].layout, -1, 0, true}, {"php-snowflake", otherLayouts[6].layout, -1, 0, true},
		{"uuid7-draft", otherLayouts[9].layout, 1, 1, true},
		{"uuidv1", "uuidv1", 1, 1, true}, {"uuidv4", "uuidv4", 1, 1, true},
		{"uuidv6", "uuidv6", 1, 1, true}, {"uuidv7", "uuidv7", 1, 1, true},
		{"ulid", "ulid", 1, 1, true}, {"ksuid", "ksuid", 1, 1, true}, {"xid", "xid", 1, 1, true},
		{"random of 63 bits", "none", 0.96, 0, true}, {"random of 64 bits", "none", 0.97, 0, true},
		{"Unix seconds", "none", 1, 0, true}, {"Unix milliseconds", "none", 1, 0, true},
		{"Unix microseconds", "none", 0.99, 0, true}, {"Unix nanoseconds", "none", 0.95, 0, true},
		{"a database sequence", "none", 1, 0, true}, {"amounts", "none", 0.9, 0, true},
	}
	if len(rows) != len(all) {
		t.Errorf("%d origins are looked at, want %d", len(rows), len(all))
	}
	for _, row := range rows {
		if l, err := firn.ParseLayout(row.name); err == nil {
			row.name = l.String()
		}
		taken := make(map[string]int)
		likely, three, ids := 0, 0, all[row.origin]
		for _, id := range ids {
			r, err := Read(id, Options{Now: corpusNow})
			i := -1
			if err == nil {
				i = slices.IndexFunc(r.Readings, func(x Reading) bool { return x.Name == row.name })
			}
			if i >= 0 && i < 3 {
				three++
			}
			if err != nil || !r.Known() {
				taken["none"]++
				continue
			}
			taken[r.Readings[0].Name]++
			if i >= 0 && r.Readings[i].Likelihood() == Likely {
				likely++
			}
		}
		column := NewSummary(Options{}, corpusNow)
		for _, id := range ids {
			_ = column.Add(id)
		}
		whole := "none"
		if r := column.Report(); r.Known {
			whole = r.Name
		}
		n := float64(len(ids))
		t.Logf("%-20s column: %s; %4.1f %% likely, %4.1f %% among the first three; one by one: %s", row.origin, whole, 100*float64(likely)/n, 100*float64(three)/n, shares(taken, n))
		if float64(taken[row.name]) < row.first*n || float64(likely) < row.likely*n {
			t.Errorf("%s: of %d IDs %d are taken for %s, and %d are likely; want %.0f %% and %.0f %%", row.origin, len(ids), taken[row.name], row.name, likely, 100*row.first, 100*row.likely)
		}
		if row.name != "none" && row.first >= 0 && float64(three) < 0.9*n {
			t.Errorf("%s: %s is among the first three readings of %d of %d IDs, want 90 %%", row.origin, row.name, three, len(ids))
		}
		if row.column && whole != row.name {
			t.Errorf("%s: the column is taken for %s, want %s", row.origin, whole, row.name)
		}
	}
}

// shares lists what IDs are taken for, the most frequent first.
func shares(taken map[string]int, n float64) string {
	names := slices.SortedFunc(maps.Keys(taken), func(a, b string) int {
		return cmp.Or(taken[b]-taken[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %.1f %%", name, 100*float64(taken[name])/n)
	}
	return strings.Join(names, ", ")
}
