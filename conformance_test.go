package firn_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// vectorDir contains rows that the real systems made; see its README. They are
// frozen: a row is never changed to fit the code.
const vectorDir = "testdata/vectors"

// vectorFiles describes each file for TestConformance. The number of rows is
// frozen too, so that a truncated file cannot pass.
var vectorFiles = []struct {
	name      string
	rows      int
	check     func(t *testing.T, data []byte) (checked int)
	elsewhere string // the package that checks it
}{
	{name: "flake-idgen.ndjson", rows: 134, check: checkIDRows},
	{name: "snowcast.ndjson", rows: 43, check: checkIDRows},
	{name: "lable.ndjson", rows: 177, check: checkIDRows},
	{name: "hazelcast.ndjson", rows: 201, check: checkIDRows},
	{name: "boundary.ndjson", rows: 190, check: checkIDRows},
	{name: "boundary-bases.ndjson", rows: 409, check: checkBaseRows},
	{name: "hazelcast-batch.ndjson", rows: 77, check: checkBatchRows},
	{name: "hazelcast-prefetch.json", rows: 10, check: checkPrefetchRows},
	{name: "hazelcast-wildcard.json", rows: 6, elsewhere: "server/internal/operate/config"},
}

// TestConformance checks every row of every file, and counts them: go test -v
// -run Conformance shows the counts.
func TestConformance(t *testing.T) {
	known := map[string]bool{"README.md": true}
	var counts strings.Builder
	total, files := 0, 0
	for _, f := range vectorFiles {
		known[f.name] = true
		if f.elsewhere != "" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			data := must.Get(os.ReadFile(filepath.Join(vectorDir, f.name)))(t)
			rows := f.check(t, data)
			if rows != f.rows {
				t.Errorf("%s: %d rows, want %d", f.name, rows, f.rows)
			}
			fmt.Fprintf(&counts, "vectors: %s %d rows\n", f.name, rows)
			total += rows
			files++
		})
	}
	entries := must.Get(os.ReadDir(vectorDir))(t)
	for _, e := range entries {
		if !known[e.Name()] {
			t.Errorf("no check for %s: a vector file that nothing reads proves nothing", e.Name())
		}
	}
	fmt.Fprintf(&counts, "vectors: %d rows in %d files\n", total, files)
	io.WriteString(t.Output(), counts.String())
}

// decodeStrict decodes one JSON value. An unknown field is an error: it may be
// what a row is about.
func decodeStrict(t *testing.T, data []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("read %s: %v", data, err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("read %s: something follows the value", data)
	}
}

// eachLine calls check for every line and counts them.
func eachLine(t *testing.T, data []byte, check func(line []byte)) (rows int) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		check(lines.Bytes())
		rows++
	}
	must.Do(t, lines.Err())
	return rows
}

// layoutText returns the layout of a row: its preset and params, in the form
// for ParseLayout, which the rows use too.
func layoutText(preset string, params map[string]any) string {
	var b strings.Builder
	b.WriteString(preset)
	for _, key := range slices.Sorted(maps.Keys(params)) {
		fmt.Fprintf(&b, ",%s=%v", key, params[key])
	}
	return b.String()
}

// checkIDRows checks rows with one ID: its parts, and its texts.
func checkIDRows(t *testing.T, data []byte) int {
	return eachLine(t, data, func(line []byte) {
		var row struct {
			Preset string         `json:"preset"`
			Params map[string]any `json:"params"`
			TimeMS *int64         `json:"time_ms"`
			Node   *uint64        `json:"node"`
			Seq    *uint64        `json:"seq"`
			Hex    string         `json:"hex"`
			Dec    string         `json:"dec"`
			Base62 string         `json:"base62"`
		}
		decodeStrict(t, line, &row)
		if row.TimeMS == nil || row.Node == nil || row.Seq == nil || (row.Base62 != "") != (row.Preset == "boundary") {
			t.Fatalf("a field is missing in %s", line)
		}
		text := layoutText(row.Preset, row.Params)
		l, err := firn.ParseLayout(text)
		if err != nil {
			t.Errorf("ParseLayout(%q): %v, in %s", text, err, line)
			return
		}
		parts := firn.Parts{Time: time.UnixMilli(*row.TimeMS).UTC(), Node: *row.Node, Seq: *row.Seq}
		raw := bytesOfHex(t, row.Hex)
		if len(raw) != l.Bits()/8 {
			t.Fatalf("layout %s has %d bits, but the row's ID is %s", l, l.Bits(), row.Hex)
		}
		want := wideOfBig(new(big.Int).SetBytes(raw))
		if id, err := composeAny(l, parts); err != nil || id != want {
			t.Errorf("Compose(%+v) of %s = %v, %v, want %s", parts, l, id, err, row.Hex)
		}
		got, err := l.DecomposeBytes(raw)
		again, err2 := decomposeAny(l, want)
		if err != nil || err2 != nil || got != parts || again != parts {
			t.Errorf("DecomposeBytes and Decompose(%s) of %s = %+v, %v and %+v, %v, want %+v",
				row.Hex, l, got, err, again, err2, parts)
		}
		if len(raw) == 8 {
			sameText(t, line, encKind64, want.id(), row.Hex, firn.Hex)
			sameText(t, line, encKind64, want.id(), row.Dec, firn.Decimal)
			return
		}
		sameText(t, line, encKind128, want.id128(), row.Hex, firn.Hex)
		sameText(t, line, encKind128, want.id128(), row.Dec, firn.Decimal)
		sameText(t, line, encKind128, want.id128(), row.Base62, flake62)
	})
}

func bytesOfHex(t *testing.T, s string) []byte {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 16)
	if !ok || len(s)%2 != 0 {
		t.Fatalf("%q is not the bytes of an ID", s)
	}
	return n.FillBytes(make([]byte, len(s)/2))
}

// sameText checks that a text formats and parses as the ID.
func sameText[T comparable](t *testing.T, line []byte, k encKind[T], id T, text string, f firn.Format) {
	t.Helper()
	if got := string(k.append(f, nil, id)); got != text {
		t.Errorf("%v: append %v = %q, want %q, in %s", f, id, got, text, line)
	}
	if got, err := k.parse(f, text); err != nil || got != id {
		t.Errorf("%v: parse %q = %v, %v, want %v, in %s", f, text, got, err, id, line)
	}
}

var flake62, _ = firn.ParseFormat("flake62")

// checkBaseRows checks numbers in Boundary's bases.
func checkBaseRows(t *testing.T, data []byte) int {
	return eachLine(t, data, func(line []byte) {
		var row struct {
			Int  string `json:"int"`
			Base int    `json:"base"`
			Text string `json:"text"`
		}
		decodeStrict(t, line, &row)
		n, ok := new(big.Int).SetString(row.Int, 10)
		if !ok || n.BitLen() > 128 {
			t.Fatalf("%q is not a number of 128 bits, in %s", row.Int, line)
		}
		f, err := firn.ParseFormat(fmt.Sprint("flake", row.Base))
		if err != nil {
			t.Errorf("ParseFormat(flake%d): %v, in %s", row.Base, err, line)
			return
		}
		id := firn.ID128(new(big.Int).Abs(n).FillBytes(make([]byte, 16)))
		text := row.Text
		if n.Sign() < 0 {
			// An ID has no sign. The row still contains the digits.
			text, ok = strings.CutPrefix(row.Text, "-")
			if got := "-" + f.Text128(id); !ok || got != row.Text {
				t.Errorf("\"-\"+%v.Append128(%x) = %q, want %q", f, id[:], got, row.Text)
			}
			var fault *firn.ParseError
			if got, err := f.Parse128(row.Text); !errors.As(err, &fault) || fault.Pos != 0 {
				t.Errorf("%v.Parse128(%q) = %x, %v, want a *ParseError at offset 0", f, row.Text, got[:], err)
			}
			if got, err := f.Parse(row.Text); !errors.As(err, &fault) || fault.Pos != 0 {
				t.Errorf("%v.Parse(%q) = %v, %v, want a *ParseError at offset 0", f, row.Text, got, err)
			}
		}
		sameText(t, line, encKind128, id, text, f)
		if hi, lo := id.Uint64s(); hi == 0 {
			sameText(t, line, encKind64, firn.ID(lo), text, f)
		} else if got, err := f.Parse(text); err == nil {
			t.Errorf("%v.Parse(%q) = %v, want an error: it has more than 64 bits", f, text, got)
		}
	})
}

// checkBatchRows drives a fresh generator through each row's script.
// TestGeneratorLaw compares the IDs of batches with those of their runs.
func checkBatchRows(t *testing.T, data []byte) int {
	return eachLine(t, data, func(line []byte) {
		var row struct {
			Name       string         `json:"name"`
			Preset     string         `json:"preset"`
			Params     map[string]any `json:"params"`
			MaxAheadMS *int64         `json:"max_ahead_ms"`
			Node       *uint64        `json:"node"`
			Steps      []struct {
				NowMS     *int64 `json:"now_ms"`
				Count     int    `json:"count"`
				First     string `json:"first"`
				Increment string `json:"increment"`
				Last      string `json:"last"`
				WaitMS    *int64 `json:"wait_ms"`
			} `json:"steps"`
		}
		decodeStrict(t, line, &row)
		if row.MaxAheadMS == nil || row.Node == nil || len(row.Steps) == 0 {
			t.Fatalf("a field is missing in %s", line)
		}
		text := layoutText(row.Preset, row.Params)
		l, err := firn.ParseLayout(text)
		if err != nil {
			t.Errorf("%s: ParseLayout(%q): %v", row.Name, text, err)
			return
		}
		// The member of the real system had its own node ID from the start. So
		// the grant has a beginning, and nothing must be left out for an
		// earlier owner.
		var now time.Time
		g, err := firn.NewGenerator(l, firn.Grant{Node: *row.Node, From: l.Epoch()}, &firn.Options{
			Now:      func() time.Time { return now },
			MaxAhead: milliseconds(*row.MaxAheadMS),
		})
		if err != nil {
			t.Errorf("%s: NewGenerator(%s): %v", row.Name, l, err)
			return
		}
		for i, step := range row.Steps {
			if step.NowMS == nil || step.WaitMS == nil {
				t.Fatalf("a field is missing in %s", line)
			}
			now = time.UnixMilli(*step.NowMS)
			b, hold, err := g.Reserve(step.Count)
			if err != nil {
				t.Errorf("%s, step %d: Reserve(%d) at %d: %v", row.Name, i, step.Count, *step.NowMS, err)
				return
			}
			if want := milliseconds(*step.WaitMS); hold != want {
				t.Errorf("%s, step %d: Reserve(%d) at %d says hold for %v, want %v", row.Name, i, step.Count, *step.NowMS, hold, want)
			}
			first, last := decimalID(t, step.First), decimalID(t, step.Last)
			increment, err := strconv.ParseUint(step.Increment, 10, 64)
			if err != nil {
				t.Fatalf("increment %q in %s", step.Increment, line)
			}
			want := firn.Run{First: first, Step: increment, Count: step.Count}
			if got := b.Runs(); len(got) != 1 || got[0] != want {
				t.Errorf("%s, step %d: Reserve(%d).Runs() = %+v, want %+v", row.Name, i, step.Count, got, want)
			}
			if want.First+firn.ID(increment*uint64(step.Count-1)) != last {
				t.Fatalf("the row contradicts itself: %s", line)
			}
			if b.Len() != step.Count {
				t.Errorf("%s, step %d: Len() = %d, want %d", row.Name, i, b.Len(), step.Count)
			}
		}
	})
}

func decimalID(t *testing.T, s string) firn.ID {
	t.Helper()
	return must.Get(firn.ParseID(s))(t)
}

// milliseconds returns a Duration, limited to the longest one.
func milliseconds(ms int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(min(max(ms, -most), most)) * time.Millisecond
}

// A countingSource returns consecutive numbers from 1, as no ID is 0. It stops
// after a number of fetches, so that a prefetcher that never has enough fails
// instead of running forever.
type countingSource struct {
	next    firn.ID
	fetches int
	most    int
}

func (s *countingSource) NextBatch(ctx context.Context, n int) (firn.Batch, error) {
	if s.fetches++; s.fetches > s.most {
		return firn.Batch{}, fmt.Errorf("fetched %d times", s.fetches)
	}
	first := s.next + 1
	s.next += firn.ID(n)
	return firn.BatchFromRuns(firn.Run{First: first, Step: 1, Count: n})
}

// checkPrefetchRows runs a prefetcher through each row, in fake time.
func checkPrefetchRows(t *testing.T, data []byte) int {
	var rows []struct {
		ID             string   `json:"id"`
		Kind           string   `json:"kind"`
		PrefetchCount  int      `json:"prefetchCount"`
		ValidityMillis *int64   `json:"validityMillis"`
		Supplier       string   `json:"supplier"`
		Quirks         []string `json:"quirks"`
		Steps          []struct {
			T       *int64 `json:"t"`
			ID      any    `json:"id"`
			Fetched *bool  `json:"fetched"`
		} `json:"steps"`
	}
	decodeStrict(t, data, &rows)
	for _, row := range rows {
		if row.Kind != "auto_batcher" || row.Supplier != "consecutive integers from 0, increment 1" || row.ValidityMillis == nil {
			t.Fatalf("%s: this is a row of another kind: %+v", row.ID, row)
		}
		synctest.Test(t, func(t *testing.T) {
			source := &countingSource{most: 100}
			p := firn.NewPrefetcher(source, &firn.PrefetchOptions{Count: row.PrefetchCount, MaxCount: row.PrefetchCount,
				Validity: cmp.Or(milliseconds(*row.ValidityMillis), -1), OnDemand: true})
			defer p.Close(t.Context())
			step := func(what string, wantID firn.ID, wantFetched bool) {
				t.Helper()
				before := source.fetches
				id, err := p.Next(t.Context())
				if fetched := source.fetches - before; err != nil || id != wantID+1 || fetched > 1 || fetched == 1 != wantFetched {
					t.Errorf("%s, %s: Next() = %v, %v after %d fetches, want %v, fetched %v", row.ID, what, id, err, fetched, wantID+1, wantFetched)
				}
			}
			if row.Quirks != nil {
				// In the real system, the end of the validity overflows, so
				// each batch is too old when it arrives and the first call
				// never returns.
				step("first", 0, true)
				step("second", 1, false)
				time.Sleep(50 * 365 * 24 * time.Hour)
				step("50 years later", 2, false)
				return
			}
			start := time.Now()
			for i, s := range row.Steps {
				id, ok := s.ID.(json.Number)
				if s.T == nil || s.Fetched == nil || !ok {
					t.Fatalf("%s: a field is missing in step %d", row.ID, i)
				}
				// The time cannot step back here: ages are measured by a clock
				// that does not go back.
				time.Sleep(time.Until(start.Add(milliseconds(*s.T))))
				synctest.Wait() // a timer ends the batch
				step(fmt.Sprintf("step %d at %d ms", i, *s.T), decimalID(t, id.String()), *s.Fetched)
			}
		})
	}
	return len(rows)
}
