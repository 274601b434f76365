package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func readLines(t *testing.T, r io.Reader) (got []string, err error) {
	t.Helper()
	l := newLines(t.Context(), r, nil)
	for {
		line, bad, ok := l.next()
		if !ok {
			return got, l.err
		}
		if bad != nil {
			line = bad.Error()
		}
		got = append(got, line)
		if l.number != len(got) {
			t.Errorf("line %d has the number %d", len(got), l.number)
		}
	}
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
	if !errors.Is(err, broken) || exitCode(err) != exitFailed || len(got) < 2 {
		t.Errorf("got %q, %v, want the lines before, and the error", got, err)
	}
}

// TestInterrupt ends a command that waits for input which never comes.
func TestInterrupt(t *testing.T) {
	for _, args := range [][]string{
		{"inspect", "--layout", "default", "--json", "-"}, {"inspect", "-"}, {"compose", "-"}, {"convert", "--to", "hex", "-"}, {"check"},
		{"next", "-n", "1000000000000", "--layout", "bits=time:41.seq:2,unit=1s", "--node", "0"},
		{"next", "-n", "1000000000000", "--layout", "bits=time:41.seq:2,unit=1s", "--store", testStore(t)},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		in, feed := io.Pipe()
		var out, errs bytes.Buffer
		a := &app{stdin: in, stdout: &out, stderr: &errs, now: time.Now, getenv: func(string) string { return "" }}
		done := make(chan int)
		go func() { done <- run(ctx, a, args) }()
		if args[0] != "next" {
			if _, err := io.WriteString(feed, "5\n"); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		select {
		case code := <-done:
			if code != exitInterrupted || errs.String() != "firn: interrupted\n" {
				t.Errorf("firn %s: interrupted, it ends with %d: %s", strings.Join(args, " "), code, &errs)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("firn %s does not end when it is interrupted", strings.Join(args, " "))
		}
		in.Close() // ends the goroutine that reads
	}
}

// TestFlush wants answers at once where the input pauses.
func TestFlush(t *testing.T) {
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	a := &app{stdin: in, stdout: out, stderr: io.Discard, now: time.Now, getenv: func(string) string { return "" }}
	done := make(chan int)
	go func() { done <- run(t.Context(), a, []string{"inspect", "--layout", "default", "--json", "-"}) }()
	r := bufio.NewReader(answers)
	for range 3 {
		if _, err := io.WriteString(feed, "5\n"); err != nil {
			t.Fatal(err)
		}
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

// TestReaderGone: firn is quiet once the reader of its output has gone.
func TestReaderGone(t *testing.T) {
	for _, args := range [][]string{{"next", "-n", "100000"}, {"layout"}, {"inspect", "--layout", "default", "5"}} {
		var errs bytes.Buffer
		store := testStore(t)
		a := &app{stdin: strings.NewReader(""), stdout: goneWriter{}, stderr: &errs, now: time.Now, getenv: func(string) string { return store }}
		if code := run(t.Context(), a, args); code != exitFine || errs.Len() > 0 {
			t.Errorf("firn %s ends with %d: %s", strings.Join(args, " "), code, &errs)
		}
	}
}
