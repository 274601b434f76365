package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A gate blocks writes while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when the gate opens
	text bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	<-shut
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(b)
}

// TestLogWriter: lines are written before the call returns; without a reader,
// only the first call waits, briefly, a bounded number of lines is kept, and
// the log reports how many are missing.
func TestLogWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		close(open)
		g := &gate{shut: open}
		w := newLogWriter(g, func(lines int) []byte { return fmt.Appendf(nil, "%d are missing\n", lines) })
		begin := time.Now()
		for i := range 3 {
			fmt.Fprintf(w, "line %d\n", i)
			if got := g.text.String(); !strings.HasSuffix(got, fmt.Sprintf("line %d\n", i)) {
				t.Errorf("after line %d the log has %q", i, got)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("it took %v", took)
		}
		g.mu.Lock()
		g.shut = make(chan struct{})
		g.text.Reset()
		g.mu.Unlock()
		const size, many = 1000, 5000
		for i := range many {
			fmt.Fprintf(w, "%0*d\n", size-1, i)
		}
		if took := time.Since(begin); took != logPatience {
			t.Errorf("%d unread lines took %v, want %v", many, took, logPatience)
		}
		close(g.shut)
		synctest.Wait()
		fmt.Fprintln(w, "the last")
		w.Close()
		got := strings.Split(g.text.String(), "\n")
		kept := 1 + mostLines // and the line that waited
		if len(got) != kept+3 || got[kept] != fmt.Sprintf("%d are missing", many-kept) || got[kept+1] != "the last" {
			t.Errorf("%d lines, the last of them %q, want %d that were kept, and how many are missing", len(got), got[max(0, len(got)-3):], kept)
		}
		fmt.Fprintln(w, "too late")
		if strings.Contains(g.text.String(), "too late") {
			t.Error("a line was written after Close")
		}
	})
}

// TestLogWriterCloses: Close does not wait for a log without a reader.
func TestLogWriterCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{shut: make(chan struct{})}
		w := newLogWriter(g, func(int) []byte { return nil })
		fmt.Fprintln(w, "line")
		begin := time.Now()
		w.Close()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Close took %v, want a second", took)
		}
		close(g.shut)
		<-w.ended
	})
}
