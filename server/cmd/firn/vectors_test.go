package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for key := range v.Params {
			if !yield(key) {
				return
			}
		}
	}) {
		text += fmt.Sprintf(",%s=%v", key, v.Params[key])
	}
	return text
}

// rows reads a file of vectors.
func rowsOf[T any](t *testing.T, name string) []T {
	t.Helper()
	f, err := os.Open(filepath.Join(vectors, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []T
	for in := bufio.NewScanner(f); in.Scan(); {
		d := json.NewDecoder(strings.NewReader(in.Text()))
		d.UseNumber()
		var row T
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

// linesOf is the output of a command as lines.
func linesOf(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// TestVectorIDs sends every ID of the real systems through compose, inspect and
// convert, as a stream of lines.
func TestVectorIDs(t *testing.T) {
	all := 0
	for _, name := range []string{"boundary", "flake-idgen", "hazelcast", "lable", "snowcast"} {
		file := name + ".ndjson"
		rows := rowsOf[vector](t, file)
		all += len(rows)

		// compose: numbers in one line, strings in the next.
		var in strings.Builder
		for i, v := range rows {
			quote := ""
			if i%2 == 1 {
				quote = `"`
			}
			fmt.Fprintf(&in, "{\"layout\":%q,\"time_ms\":%s%s%s,\"node\":%s%s%s,\"seq\":%s%s%s}\n", v.layout(),
				quote, v.TimeMS, quote, quote, v.Node, quote, quote, v.Seq, quote)
		}
		stdout, stderr, code := runFirn(t, in.String(), "compose", "-")
		if code != exitFine || stderr != "" {
			t.Errorf("firn compose - of %s ends with %d: %s", file, code, stderr)
		}
		got := linesOf(stdout)
		if len(got) != len(rows) {
			t.Fatalf("firn compose - of %s gives %d lines, want %d", file, len(got), len(rows))
		}
		for i, v := range rows {
			if want := fmt.Sprintf(`{"dec":"%s","hex":"%s"}`, v.Dec, v.Hex); got[i] != want {
				t.Errorf("%s row %d: compose gives %s, want %s", file, i+1, got[i], want)
			}
		}
		t.Logf("vectors: cli compose %s %d rows", file, len(rows))

		// inspect: a stream for every layout, in decimal and in hexadecimal.
		inspected := 0
		for _, layout := range layoutsOf(rows) {
			var mine []vector
			var dec, hex strings.Builder
			for _, v := range rows {
				if v.layout() == layout {
					mine = append(mine, v)
					fmt.Fprintln(&dec, v.Dec)
					fmt.Fprintln(&hex, "0x"+v.Hex)
				}
			}
			for _, in := range []string{dec.String(), hex.String()} {
				stdout, stderr, code := runFirn(t, in, "inspect", "--layout", layout, "--json", "-")
				got := linesOf(stdout)
				if code != exitFine || stderr != "" || len(got) != len(mine) {
					t.Fatalf("firn inspect --layout %s --json - ends with %d and %d lines, want %d: %s", layout, code, len(got), len(mine), stderr)
				}
				for i, v := range mine {
					checkInspected(t, file, v, got[i])
				}
			}
			inspected += len(mine)
		}
		if inspected != len(rows) {
			t.Errorf("inspect has read %d rows of %s, want %d", inspected, file, len(rows))
		}
		t.Logf("vectors: cli inspect %s %d rows", file, inspected)

		if name == "boundary" {
			var dec, base62 strings.Builder
			for _, v := range rows {
				fmt.Fprintln(&dec, v.Dec)
				fmt.Fprintln(&base62, v.Base62)
			}
			for _, c := range []struct{ from, to, in, want string }{
				{"dec", "base62", dec.String(), base62.String()},
				{"base62", "dec", base62.String(), dec.String()},
			} {
				if stdout, stderr, code := runFirn(t, c.in, "convert", "--from", c.from, "--to", c.to, "-"); code != exitFine || stdout != c.want {
					t.Errorf("firn convert --from %s --to %s of %s ends with %d and differs: %s", c.from, c.to, file, code, stderr)
				}
			}
			t.Logf("vectors: cli convert %s %d rows", file, len(rows))
		}
	}
	t.Logf("report: cli: %d vectors of real systems through compose and inspect", all)
}

func layoutsOf(rows []vector) []string {
	var layouts []string
	for _, v := range rows {
		if l := v.layout(); !slices.Contains(layouts, l) {
			layouts = append(layouts, l)
		}
	}
	return layouts
}

// checkInspected compares a line of inspect with the row. What is above 2^53
// must be a string.
func checkInspected(t *testing.T, file string, v vector, line string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	var got map[string]any
	if err := d.Decode(&got); err != nil {
		t.Fatalf("%s: inspect gives %s: %v", file, line, err)
	}
	for key, want := range map[string]json.Number{"time_ms": v.TimeMS, "node": v.Node, "seq": v.Seq} {
		var exact any = want
		if n, err := want.Int64(); err != nil || n > 1<<53 {
			exact = want.String()
		}
		if got[key] != exact {
			t.Errorf("%s: %s: %s is %#v, want %#v", file, line, key, got[key], exact)
		}
	}
	if got["dec"] != v.Dec || got["hex"] != v.Hex {
		t.Errorf("%s: %s: want dec %s and hex %s", file, line, v.Dec, v.Hex)
	}
}

// TestVectorBases sends Boundary's numbers through convert in both directions.
// A negative number is not an ID: those rows must be refused.
func TestVectorBases(t *testing.T) {
	const file = "boundary-bases.ndjson"
	type row struct {
		Int  string
		Base int
		Text string
	}
	rows := rowsOf[row](t, file)
	read := 0
	for base := 2; base <= 62; base++ {
		format := fmt.Sprintf("base%d", base)
		if base == 32 || base == 58 {
			format = fmt.Sprintf("flake%d", base) // base32 and base58 are other alphabets
		}
		var ints, texts strings.Builder
		for _, r := range rows {
			if r.Base != base {
				continue
			}
			read++
			if !strings.HasPrefix(r.Int, "-") {
				fmt.Fprintln(&ints, r.Int)
				fmt.Fprintln(&texts, r.Text)
				continue
			}
			for _, c := range [][2]string{{"dec", r.Int}, {format, r.Text}} {
				if stdout, stderr, code := runFirn(t, c[1]+"\n", "convert", "--from", c[0], "-"); code != exitNo || stdout != "" || !strings.Contains(stderr, "sign") {
					t.Errorf("firn convert --from %s of %s ends with %d: %s%s; want %d and a word on the sign", c[0], c[1], code, stdout, stderr, exitNo)
				}
			}
		}
		if ints.Len() == 0 {
			continue
		}
		for _, c := range []struct{ from, to, in, want string }{
			{"dec", format, ints.String(), texts.String()},
			{format, "dec", texts.String(), ints.String()},
		} {
			stdout, stderr, code := runFirn(t, c.in, "convert", "--from", c.from, "--to", c.to, "-")
			if code != exitFine || stdout != c.want {
				t.Errorf("firn convert --from %s --to %s ends with %d: %s\n got %q\nwant %q", c.from, c.to, code, stderr, stdout, c.want)
			}
		}
	}
	if read != len(rows) {
		t.Errorf("convert has read %d rows of %s, want %d", read, file, len(rows))
	}
	t.Logf("vectors: cli convert %s %d rows", file, read)
}
