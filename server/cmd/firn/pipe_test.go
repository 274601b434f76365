package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/lines"
)

// A pieces remembers each write.
type pieces [][]byte

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, bytes.Clone(b))
	return len(b), nil
}

// TestLinesFitIntoPipes: processes that write into one pipe keep each other's
// lines whole: every write has whole lines, and no more than a pipe takes at
// once.
func TestLinesFitIntoPipes(t *testing.T) {
	const count = 3000
	var ids, jsonLines, raw []byte
	for i := range uint64(count) {
		ids = fmt.Appendf(ids, "%d\n", 117840900191665930+i)
		jsonLines = fmt.Appendf(jsonLines, `{"time_ms":1795000000000,"node":%d}`+"\n", i%1000)
		raw = firn.Raw.Append(raw, firn.ID(117840900191665930+i))
	}
	for _, test := range []struct {
		stdin []byte
		args  []string
		raw   bool
	}{
		{stdin: ids, args: []string{"convert", "--to", "dec", "-"}},
		{stdin: ids, args: []string{"convert", "--to", "hex", "--json", "-"}},
		{stdin: ids, args: []string{"convert", "--to", "raw", "-"}, raw: true},
		{stdin: raw, args: []string{"convert", "--from", "raw", "--bits", "64", "--to", "base62", "-"}},
		{stdin: ids, args: []string{"inspect", "--layout", "default", "--json", "-"}},
		{stdin: ids, args: []string{"inspect", "--layout", "default", "-"}},
		{stdin: jsonLines, args: []string{"compose", "-"}},
		{args: []string{"next", "--node", "1", "-n", "3000"}},
		{args: []string{"next", "--node", "1", "-n", "3000", "--format", "hex", "--json"}},
		{args: []string{"next", "--node", "1", "-n", "3000", "--format", "raw"}, raw: true},
	} {
		a, _, stderr := serveApp(t)
		var got pieces
		a.stdin, a.stdout = bytes.NewReader(test.stdin), &output{Writer: &got}
		if code := run(t.Context(), a, test.args); code != exitFine {
			t.Errorf("%q: exit %d\n%s", test.args, code, stderr)
		}
		if len(got) < 2 {
			t.Errorf("%q: %d writes, want several", test.args, len(got))
		}
		found := bytes.Count(bytes.Join(got, nil), []byte("\n"))
		if test.raw {
			found = len(bytes.Join(got, nil)) / 8
		}
		if found < count {
			t.Errorf("%q: %d records, want %d", test.args, found, count)
		}
		for _, b := range got {
			whole := bytes.HasSuffix(b, []byte("\n"))
			if test.raw {
				whole = len(b)%8 == 0
			}
			if len(b) == 0 || len(b) > lines.PipeSize || !whole {
				t.Errorf("%q: a write of %d bytes that ends with %q", test.args, len(b), b[max(0, len(b)-30):])
			}
		}
	}
}
