package logs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A gate blocks writes until it is opened.
type gate struct {
	open chan struct{}
	text bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	return g.text.Write(b)
}

// TestWriter: without a reader, only the first call waits, briefly, and
// later lines are dropped. The log then reports how many are missing, and lines
// are written before the call returns. Close does not wait for a reader.
func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		w := newWriter(g, func(lines int) []byte { return fmt.Appendf(nil, "%d are missing\n", lines) })
		begin := time.Now()
		for i := range 5000 {
			fmt.Fprintf(w, "line %d\n", i)
		}
		if took := time.Since(begin); took != patience {
			t.Errorf("unread lines took %v, want %v", took, patience)
		}
		w.Close()
		if took := time.Since(begin); took != patience+time.Second {
			t.Errorf("Close took %v, want a second", took-patience)
		}
		close(g.open)
		synctest.Wait()
		begin = time.Now()
		fmt.Fprintln(w, "again")
		for i := range 3 {
			fmt.Fprintf(w, "line %d\n", i)
			if got, want := g.text.String(), "line 0\n4999 are missing\nagain\n"; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, fmt.Sprintf("line %d\n", i)) {
				t.Errorf("after line %d the log has %q, want %q first", i, got, want)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("read lines took %v", took)
		}
		w.lost = 7
		w.Close()
		if got := g.text.String(); !strings.HasSuffix(got, "7 are missing\n") {
			t.Errorf("after Close the log has %q", got)
		}
	})
}
