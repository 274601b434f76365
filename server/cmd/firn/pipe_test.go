package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// pipeBuf is PIPE_BUF on Linux: how much a pipe takes at once.
const pipeBuf = 4096

// A pieces remembers each write.
type pieces [][]byte

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, bytes.Clone(b))
	return len(b), nil
}

// Processes that write into one pipe keep each other's lines whole: every write
// has whole lines, and no more than a pipe takes at once.
func TestWritesFitIntoPipes(t *testing.T) {
	for _, r := range []record{
		recordOf(form.Of(firn.Decimal), false),
		recordOf(form.Of(firn.Hex), true),
		recordOf(form.Of(firn.Base62), false),
		recordOf(form.Of(firn.Raw), false),
	} {
		for _, count := range []uint64{1, 215, 10_000} {
			var want []byte
			next := firn.ID(117840900191665930)
			fill := func(_ context.Context, ids []firn.ID) error {
				for i := range ids {
					ids[i] = next
					want = r.append(want, next)
					next++
				}
				return nil
			}
			var got pieces
			if err := stream(t.Context(), &got, fill, r.append, count); err != nil {
				t.Fatal(err)
			}
			if all := bytes.Join(got, nil); !bytes.Equal(all, want) {
				t.Errorf("%+v, %d IDs: %d bytes were written, want %d others", r, count, len(all), len(want))
			}
			for _, b := range got {
				whole := bytes.HasSuffix(b, []byte("\n"))
				if r.format.Is(firn.Raw) {
					whole = len(b)%8 == 0
				}
				if len(b) == 0 || len(b) > pipeBuf || !whole {
					t.Errorf("%+v, %d IDs: a write of %d bytes that ends with %q", r, count, len(b), b[max(0, len(b)-30):])
				}
			}
		}
	}
}

// TestRecordsFitIntoPipes is the same for the commands that answer a record for
// each line that they read.
func TestRecordsFitIntoPipes(t *testing.T) {
	const count = 3000
	var ids, lines, raw []byte
	for i := range uint64(count) {
		ids = fmt.Appendf(ids, "%d\n", 117840900191665930+i)
		lines = fmt.Appendf(lines, `{"time_ms":1795000000000,"node":%d}`+"\n", i%1000)
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
		{stdin: lines, args: []string{"compose", "-"}},
	} {
		a, _, stderr := serveApp(t)
		var got pieces
		a.stdin, a.stdout = bytes.NewReader(test.stdin), &got
		if code := run(t.Context(), a, test.args); code != exitFine {
			t.Errorf("%q: exit %d\n%s", test.args, code, stderr)
		}
		if len(got) < 2 {
			t.Errorf("%q: %d writes, want several", test.args, len(got))
		}
		for _, b := range got {
			whole := bytes.HasSuffix(b, []byte("\n"))
			if test.raw {
				whole = len(b)%8 == 0
			}
			if len(b) == 0 || len(b) > pipeBuf || !whole {
				t.Errorf("%q: a write of %d bytes that ends with %q", test.args, len(b), b[max(0, len(b)-30):])
			}
		}
	}
}
