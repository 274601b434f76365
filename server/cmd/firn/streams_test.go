package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// TestInterrupt ends a command that waits for input which never comes.
func TestInterrupt(t *testing.T) {
	for _, args := range [][]string{
		{"inspect", "--layout", "default", "--json", "-"}, {"inspect", "-"}, {"compose", "-"}, {"convert", "--to", "hex", "-"}, {"check"},
		{"next", "-n", "1000000000000", "--layout", "bits=time:41.seq:2,unit=1s", "--node", "0"},
		{"next", "-n", "1000000000000", "--layout", "bits=time:41.seq:2,unit=1s", "--store", testStore(t)},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		in, feed := io.Pipe()
		a, _, errs := serveApp(t)
		a.stdin, a.getenv = in, func(string) string { return "" }
		done := make(chan int)
		go func() { done <- run(ctx, a, args) }()
		if args[0] != "next" {
			must.Get(io.WriteString(feed, "5\n"))(t)
		}
		cancel()
		select {
		case code := <-done:
			if code != exitInterrupted || errs.String() != "firn: interrupted\n" {
				t.Errorf("firn %s: interrupted, it ends with %d: %s", strings.Join(args, " "), code, errs)
			}
		case <-time.After(must.Patience):
			t.Fatalf("firn %s does not end when it is interrupted", strings.Join(args, " "))
		}
		in.Close() // ends the goroutine that reads
	}
}

// TestFlush wants answers at once where the input pauses.
func TestFlush(t *testing.T) {
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	a, _, _ := serveApp(t)
	a.stdin, a.stdout = in, &output{Writer: out}
	done := make(chan int)
	go func() { done <- run(t.Context(), a, []string{"inspect", "--layout", "default", "--json", "-"}) }()
	r := bufio.NewReader(answers)
	for range 3 {
		must.Get(io.WriteString(feed, "5\n"))(t)
		line, err := r.ReadString('\n')
		if err != nil || !strings.Contains(line, `"dec":"5"`) {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	feed.Close()
	if code := <-done; code != exitFine {
		t.Errorf("it ends with %d", code)
	}
}

// TestOutputFails: firn is quiet once the reader of its output has gone, and
// fails if its output cannot be written.
func TestOutputFails(t *testing.T) {
	for _, args := range [][]string{{"next", "-n", "100000"}, {"layout"}, {"inspect", "--layout", "default", "5"}, {"--help"}, {"help", "next"}, {"--version"}, {"completion", "bash"}, {"token", "hash"}} {
		for fault, want := range map[error]string{syscall.EPIPE: "", syscall.ENOSPC: "firn: no space left on device\n"} {
			a, _, errs := serveApp(t)
			a.stdin, a.stdout = strings.NewReader("firn_x\n"), &output{Writer: failingWriter{fault}}
			code := run(t.Context(), a, args)
			if !strings.HasPrefix(errs.String(), want) || want == "" && errs.String() != "" || (code == exitFailed) != (want != "") {
				t.Errorf("firn %s with %v ends with %d: %s", strings.Join(args, " "), fault, code, errs)
			}
		}
	}
}
