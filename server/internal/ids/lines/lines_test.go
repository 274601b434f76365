package lines

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func readLines(t *testing.T, r io.Reader) (got []string, err error) {
	t.Helper()
	err = EachLine(t.Context(), r, NewWriter(io.Discard), func(n int, line string, bad error) error {
		if bad != nil {
			line = bad.Error()
		}
		got = append(got, line)
		if n != len(got) {
			t.Errorf("line %d has the number %d", len(got), n)
		}
		return nil
	})
	return got, err
}

// TestLines cuts streams that come in pieces of all sizes.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"\n", []string{""}},
		{"a", []string{"a"}},
		{"a\n", []string{"a"}},
		{"a\r\nb\r\n", []string{"a", "b"}},
		{"a\rb\n\r\n", []string{"a\rb", ""}},
		{"a\n\nb", []string{"a", "", "b"}},
		{long + "\nb\n", []string{long, "b"}},
		{long + "x\nb\n", []string{errLongLine.Error(), "b"}},
		{long + long + long, []string{errLongLine.Error()}},
		{"a\n" + long + long + long + "\nb\n", []string{"a", errLongLine.Error(), "b"}},
	} {
		readers := map[string]io.Reader{
			"as it is":      strings.NewReader(tt.text),
			"half":          iotest.HalfReader(strings.NewReader(tt.text)),
			"data with EOF": iotest.DataErrReader(strings.NewReader(tt.text)),
		}
		if len(tt.text) < 1000 {
			readers["byte by byte"] = iotest.OneByteReader(strings.NewReader(tt.text))
		}
		for name, r := range readers {
			got, err := readLines(t, r)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s, %d bytes: got %d lines, %v, want %d", name, len(tt.text), len(got), err, len(tt.want))
			}
		}
	}
}

func TestLinesError(t *testing.T) {
	broken := errors.New("broken")
	got, err := readLines(t, io.MultiReader(strings.NewReader("a\nb\nc"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) < 2 {
		t.Errorf("got %q, %v, want the lines before, and the error", got, err)
	}
}
