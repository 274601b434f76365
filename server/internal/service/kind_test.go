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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

var update = flag.Bool("update", false, "write client/kinds.go")

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
		later := row.status == 503 || k == RateLimited
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

// clientFile is what the Go client knows of kinds; it cannot import this
// package.
const clientFile = "../../../client/kinds.go"

// TestClientKinds: the file of the Go client agrees with the registry.
func TestClientKinds(t *testing.T) {
	names := map[error]string{
		firn.ErrExhausted: "firn.ErrExhausted", firn.ErrGrantOver: "firn.ErrGrantOver",
		firn.ErrTimeOver: "firn.ErrTimeOver", firn.ErrBatchTooLarge: "firn.ErrBatchTooLarge",
	}
	var b bytes.Buffer
	b.WriteString("// Code generated by go test -run TestClientKinds -update in server/internal/service. DO NOT EDIT.\n\n" +
		"package client\n\nimport \"github.com/firnid/firn\"\n\n" +
		"// problemKinds are the kinds of problems of servers.\nvar problemKinds = map[string]problemKind{\n")
	for k := range NumKinds {
		fmt.Fprintf(&b, "%q: {status: %d,", k, k.Status())
		if hint := kinds[k].hint; hint != "" {
			fmt.Fprintf(&b, "hint: %q,", hint)
		}
		if kinds[k].ofServer {
			b.WriteString("ofServer: true,")
		}
		if i := slices.IndexFunc(errorKinds[:], func(c errorKind) bool { return c.kind == k && names[c.err] != "" }); i >= 0 {
			fmt.Fprintf(&b, "is: %s,", names[errorKinds[i].err])
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
	want := must.Get(format.Source(b.Bytes()))(t)
	if *update {
		must.Do(t, os.WriteFile(clientFile, want, 0o666))
	}
	got := must.Get(os.ReadFile(clientFile))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the registry says: run go test -run TestClientKinds -update ./service", clientFile)
	}
}
