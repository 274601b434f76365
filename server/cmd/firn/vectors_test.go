package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/must"
)

// vectors is where the rows of the real systems are; its README says where they
// are from.
const vectors = "../../../testdata/vectors"

// A vector is a row of an ID.
type vector struct {
	Preset string
	Params map[string]any
	TimeMS json.Number `json:"time_ms"`
	Node   json.Number
	Seq    json.Number
	Hex    string
	Dec    string
	Base62 string
}

// layout is the row's layout as text. Lable's rows have the keys in any order.
func (v *vector) layout() string {
	text := v.Preset
	for _, key := range slices.Sorted(maps.Keys(v.Params)) {
		text += fmt.Sprintf(",%s=%v", key, v.Params[key])
	}
	return text
}

// rowsOf reads a file of vectors.
func rowsOf(t *testing.T, name string) []vector {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(vectors, name)))(t)
	defer f.Close()
	var rows []vector
	for in := bufio.NewScanner(f); in.Scan(); {
		d := json.NewDecoder(strings.NewReader(in.Text()))
		d.UseNumber()
		var row vector
		if err := d.Decode(&row); err != nil {
			t.Fatalf("%s row %d: %v", name, len(rows)+1, err)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows", name)
	}
	return rows
}

// TestVectorIDs sends every ID of the real systems through compose, inspect and
// convert, as a stream of lines for each layout.
func TestVectorIDs(t *testing.T) {
	all := 0
	for _, name := range []string{"boundary", "flake-idgen", "hazelcast", "lable", "snowcast"} {
		file := name + ".ndjson"
		byLayout := make(map[string][]vector)
		for _, v := range rowsOf(t, file) {
			byLayout[v.layout()] = append(byLayout[v.layout()], v)
		}
		for layout, rows := range byLayout {
			all += len(rows)
			var records, composed, dec, hex, base62 strings.Builder
			for i, v := range rows {
				quote := []string{"", `"`}[i%2] // numbers and strings
				fmt.Fprintf(&records, "{\"layout\":%q,\"time_ms\":%[2]s%s%[2]s,\"node\":%[2]s%[4]s%[2]s,\"seq\":%[2]s%[5]s%[2]s}\n", layout, quote, v.TimeMS, v.Node, v.Seq)
				fmt.Fprintf(&composed, "{\"dec\":%q,\"hex\":%q}\n", v.Dec, v.Hex)
				fmt.Fprintln(&dec, v.Dec)
				fmt.Fprintln(&hex, "0x"+v.Hex)
				fmt.Fprintln(&base62, v.Base62)
			}
			converts(t, file, records.String(), composed.String(), "compose", "-")
			for _, in := range []string{dec.String(), hex.String()} {
				stdout, stderr, code := runFirn(t, in, "inspect", "--layout", layout, "--json", "-")
				got := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
				if code != exitFine || stderr != "" || len(got) != len(rows) {
					t.Fatalf("firn inspect --layout %s --json - ends with %d and %d lines, want %d: %s", layout, code, len(got), len(rows), stderr)
				}
				for i, v := range rows {
					checkInspected(t, file, v, got[i])
				}
			}
			if name == "boundary" {
				converts(t, file, dec.String(), base62.String(), "convert", "--from", "dec", "--to", "flake62", "-")
				converts(t, file, base62.String(), dec.String(), "convert", "--from", "flake62", "--to", "dec", "-")
			}
		}
	}
	t.Logf("report: cli: %d vectors of real systems through compose and inspect", all)
}

// converts wants that output of a command.
func converts(t *testing.T, file, in, want string, args ...string) {
	t.Helper()
	if stdout, stderr, code := runFirn(t, in, args...); code != exitFine || stdout != want {
		t.Errorf("firn %q of %s ends with %d: %s\n got %q\nwant %q", args, file, code, stderr, stdout, want)
	}
}

// checkInspected compares a line of inspect with the row. What is above 2^53
// must be a string.
func checkInspected(t *testing.T, file string, v vector, line string) {
	t.Helper()
	exact := func(n json.Number) string {
		if v, err := n.Int64(); err != nil || v > 1<<53 {
			return strconv.Quote(n.String())
		}
		return n.String()
	}
	parts := fmt.Sprintf(`"time_ms":%s,"node":%s,`, exact(v.TimeMS), exact(v.Node))
	rest := fmt.Sprintf(`"seq":%s,"dec":%q,"hex":%q}`, exact(v.Seq), v.Dec, v.Hex)
	if !strings.Contains(line, parts) || !strings.HasSuffix(line, rest) {
		t.Errorf("%s: %s: want %s and %s", file, line, parts, rest)
	}
}
