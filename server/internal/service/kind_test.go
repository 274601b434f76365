package service

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

var update = flag.Bool("update", false, "write the files of package client")

// TestKinds: each kind has all that the protocols need, and it is consistent.
func TestKinds(t *testing.T) {
	seen := make(map[string]Kind)
	for k := range NumKinds {
		row := kinds[k]
		if row.name == "" || row.title == "" || row.status == 0 || row.resp == "" || row.code == codes.OK {
			t.Errorf("kind %d: %+v: something is missing", k, row)
		}
		if other, ok := seen[row.name]; ok {
			t.Errorf("%s is the name of the kinds %d and %d", k, other, k)
		}
		seen[row.name] = k
		if got, ok := ParseKind(k.String()); !ok || got != k {
			t.Errorf("ParseKind(%q) = %d, %t, want %d", k, got, ok, k)
		}
		later := k.isTemporary()
		if wait := row.resp == respTryAgain || row.resp == respUnavailable; wait != later {
			t.Errorf("%s: %d over HTTP and %s over RESP", k, row.status, row.resp)
		}
		if (row.code == codes.Unavailable || row.code == codes.ResourceExhausted && row.status < 507) != later {
			t.Errorf("%s: %d over HTTP and %v over gRPC", k, row.status, row.code)
		}
		if row.resp == respTryAgain && row.retry == 0 && k != RateLimited || row.retry > 0 && !later { // its error knows when
			t.Errorf("%s: %s, and %v until it is tried again", k, row.resp, row.retry)
		}
		if row.logged && row.status < 500 {
			t.Errorf("%s: the server has failed, and says %d", k, row.status)
		}
	}
	if _, ok := ParseKind("no-such-kind"); ok {
		t.Error("no-such-kind is one")
	}
}

// TestCauses: each error has one kind.
func TestCauses(t *testing.T) {
	for _, c := range errorKinds {
		if got := kindOf(fmt.Errorf("x: %w", c.err)); got != c.kind {
			t.Errorf("%v is %s, want %s", c.err, got, c.kind)
		}
	}
}

// TestProblems: an error has its kind, and the time to retry that it knows,
// however deeply it is wrapped.
func TestProblems(t *testing.T) {
	for _, row := range []struct {
		err   error
		kind  Kind
		retry time.Duration
	}{
		{&firn.WaitError{Wait: 1500 * time.Millisecond}, Busy, 1500 * time.Millisecond},
		{&firn.ClockError{Wait: 90 * time.Second}, ClockWrong, 90 * time.Second},
		{&firn.ClockError{Wait: 2 * time.Hour}, ClockWrong, 0},
		{context.DeadlineExceeded, Busy, time.Second},
		{context.Canceled, Cancelled, 0},
		{errors.New("unknown"), Internal, 0},
		{grant.ErrClockAhead, ClockAhead, 0},
		{grant.ErrComparingClocks, ClockAhead, time.Second},
		{fmt.Errorf("%w: %w: %w", firn.ErrUnavailable, context.DeadlineExceeded, grant.ErrClockAhead), ClockAhead, 0},
		{new(grant.NodesExhaustedError), NodesExhausted, time.Second},
		{&grant.NodesExhaustedError{Ahead: true}, NotYet, time.Second},
		{grant.ErrMismatch, Recreated, time.Second},
	} {
		for _, err := range []error{row.err, fmt.Errorf("read grant of node 7: %w", row.err)} {
			if f := ProblemOf(err, time.Second, false); f.Kind != row.kind || f.Retry != row.retry || strings.HasPrefix(f.Detail, "firn:") {
				t.Errorf("%v: %s, retry after %v: %s, want %s and %v", err, f.Kind, f.Retry, f.Detail, row.kind, row.retry)
			}
		}
	}
}

// TestStoreErrors: only an error without a kind of its own becomes that of a
// store that does not answer. A clock that was set back is the server's own
// problem, even if a call that waited for it has ended.
func TestStoreErrors(t *testing.T) {
	ended, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	known := []error{context.Canceled, &firn.ClockError{Wait: time.Minute}, &grant.NodesExhaustedError{Ahead: true}}
	for _, c := range errorKinds {
		known = append(known, c.err)
	}
	for _, err := range known {
		err = fmt.Errorf("sequencer s: %w: %w", context.DeadlineExceeded, err)
		if got := storeError(ended, err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	clock := ProblemOf(storeError(ended, fmt.Errorf("sequencer s: %w: %w", context.DeadlineExceeded, known[1])), time.Second, true)
	if clock.Kind != ClockWrong || clock.Retry != time.Minute {
		t.Errorf("a clock that was set back: %+v", clock)
	}
	for _, err := range []error{errors.New("connection refused"), context.DeadlineExceeded} {
		if got := storeError(ended, err); kindOf(got) != StoreUnavailable || !errors.Is(got, err) || !errors.Is(got, context.DeadlineExceeded) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	// Hosts, which a store's own error may name, stay out.
	full := fmt.Errorf("write 10.1.2.3:/srv: %w", syscall.ENOSPC)
	for _, c := range []struct {
		err  error
		says string
	}{
		{full, "could not be reached, read or written"}, {&silentError{6 * time.Second, full}, "refused calls for 6s"},
		{&silentError{6 * time.Second, nil}, "has not answered for 6s"}, {context.DeadlineExceeded, "did not answer in time"},
	} {
		f := ProblemOf(storeError(t.Context(), c.err), time.Second, false)
		if f.Kind != StoreUnavailable || !strings.Contains(f.Detail, c.says) || strings.Contains(f.Detail, "10.1.2.3") || f.Level() != slog.LevelDebug {
			t.Errorf("%v: %s: %s at level %v, want %q at DEBUG", c.err, f.Kind, f.Detail, f.Level(), c.says)
		}
	}
	if err := storeError(ended, nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
}

// These files are what the Go client knows of kinds, and how clienttest answers
// with each: they cannot import this package.
const (
	clientFile     = "../../../client/kinds.go"
	clienttestFile = "../../../client/clienttest/answers.go"
)

// clientErrors are the errors that those of the Go client match too, as its
// file names them. Of the errors of one kind, it is the one that all of its
// failures have in common: a store's bad-record has none, and a server that is
// draining has not closed the client.
var clientErrors = map[error]string{
	firn.ErrExhausted:       "firn.ErrExhausted",
	firn.ErrUnavailable:     "firn.ErrUnavailable",
	firn.ErrGrantOver:       "firn.ErrGrantOver",
	firn.ErrTimeOver:        "firn.ErrTimeOver",
	firn.ErrBatchTooLarge:   "firn.ErrBatchTooLarge",
	grant.ErrNodesExhausted: "granterr.ErrNodesExhausted",
	grant.ErrStoreWentBack:  "granterr.ErrStoreWentBack",
	grant.ErrMoved:          "granterr.ErrMoved",
	grant.ErrDetached:       "granterr.ErrDetached",
	grant.ErrDestroyed:      "granterr.ErrDestroyed",
	grant.ErrClockBehind:    "granterr.ErrClockBehind",
	grant.ErrClockAhead:     "granterr.ErrClockAhead",
	ErrNoSequencer:          "granterr.ErrNotFound", // as from package sequencer if it must exist
}

// TestClientKinds: the files of the Go client agree with the registry.
func TestClientKinds(t *testing.T) {
	var constants, matches, rows, answers bytes.Buffer
	for k := range NumKinds {
		row, key := kinds[k], strconv.Quote(k.String())
		is := ""
		for _, c := range errorKinds {
			if name := clientErrors[c.err]; c.kind == k && name != "" {
				is = name
			}
		}
		if k == NotYet {
			is = clientErrors[grant.ErrNodesExhausted] // a NodesExhaustedError that is Ahead
		}
		if is == "" && k.isTemporary() && !row.notOfIDs {
			is = clientErrors[map[string]error{respTryAgain: firn.ErrExhausted, respUnavailable: firn.ErrUnavailable}[row.resp]]
		}
		if !row.notOfIDs {
			key = "Kind"
			for word := range strings.SplitSeq(k.String(), "-") {
				key += strings.ToUpper(word[:1]) + word[1:]
			}
			fmt.Fprintf(&constants, "%s Kind = %q // %s%s\n", key, k, strings.ToLower(row.title[:1]), row.title[1:])
			if is != "" {
				fmt.Fprintf(&matches, "//   - %s: %s\n", key, strings.Replace(is, "granterr", "grant", 1))
			}
		}
		fmt.Fprintf(&rows, "%s: {status: %d,", key, k.Status())
		if row.hint != "" {
			fmt.Fprintf(&rows, "hint: %q,", row.hint)
		}
		if row.ofServer {
			rows.WriteString("ofServer: true,")
		}
		if is != "" {
			fmt.Fprintf(&rows, "is: %s,", is)
		}
		rows.WriteString("},\n")
		retry := int(row.retry.Seconds())
		if k == RateLimited {
			retry = 1 // its error knows when
		}
		fmt.Fprintf(&answers, "%q: {%d, %d},\n", k, k.Status(), retry)
	}
	agrees(t, clientFile, `package client

import (
	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/granterr"
)

// The kinds of problems. An Error of one of these matches an error of another
// package:
//
%sconst (
%s)

// problemKinds are the kinds of problems of servers.
var problemKinds = map[Kind]problemKind{
%s}
`, &matches, &constants, &rows)
	agrees(t, clienttestFile, `package clienttest

import "github.com/firnid/firn/client"

// answers are those of servers with each kind of problem.
var answers = map[client.Kind]answer{
%s}
`, &answers)
}

// TestTemporaryKinds: for each problem that passes by itself, a client's error
// matches one that a program checks to try again later, and for no other
// problem one of firn.ErrExhausted and firn.ErrUnavailable.
func TestTemporaryKinds(t *testing.T) {
	later := []error{firn.ErrExhausted, firn.ErrUnavailable}
	known := []error{firn.ErrGrantOver, grant.ErrNodesExhausted, grant.ErrClockBehind, grant.ErrClockAhead, grant.ErrStoreWentBack}
	for k := range NumKinds {
		count := func(all []error) (n int) {
			for _, target := range all {
				if errors.Is(&client.Error{Kind: client.Kind(k.String())}, target) {
					n++
				}
			}
			return n
		}
		want := 0
		if k.isTemporary() && !kinds[k].notOfIDs {
			want = 1
		}
		if n := count(later) + count(known); n != want || !k.isTemporary() && count(later) > 0 {
			t.Errorf("%s (%d): its error matches %d of %v and %v, want %d", k, k.Status(), n, later, known, want)
		}
	}
}

// agrees fails the test if a generated file has another content.
func agrees(t *testing.T, file, content string, a ...any) {
	t.Helper()
	const head = "// Code generated by go test -run TestClientKinds -update in server/internal/service. DO NOT EDIT.\n\n"
	want := must.Get(format.Source(fmt.Appendf([]byte(head), content, a...)))(t)
	if *update {
		must.Do(t, os.WriteFile(file, want, 0o666))
	}
	got := must.Get(os.ReadFile(file))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the registry says: run go test -run TestClientKinds -update ./service", file)
	}
}

// TestKindsAsDocumented: docs/http.md has a row for each kind, with its status.
func TestKindsAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/http.md")
	if err != nil {
		t.Skip("the module stands alone, without the repository's docs")
	}
	got := regexp.MustCompile("(?m)^\\| `"+problemType+"([a-z-]+)` \\| ([0-9]+) \\|").FindAllStringSubmatch(string(page), -1)
	documented := make(map[string]string)
	for _, row := range got {
		documented[row[1]] = row[2]
	}
	if len(got) != int(NumKinds) {
		t.Errorf("docs/http.md has %d kinds, want %d", len(got), NumKinds)
	}
	for k := range NumKinds {
		if got, want := documented[k.String()], strconv.Itoa(k.Status()); got != want {
			t.Errorf("docs/http.md: the status of %s is %q, want %s", k, got, want)
		}
	}
}
