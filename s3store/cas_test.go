package s3store

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/history"
)

// reset answers nothing, and closes the connection.
func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// TestOutcomes has each answer to a write that was applied, was not, or was
// replaced by another one since. Each must be sent once. CAS must not say more
// than is true, but in one case: a write that was applied, is answered as if its
// condition were false, and was replaced since counts as refused. Only what
// sends a write again answers so, and it is forbidden.
func TestOutcomes(t *testing.T) {
	const refused, unknown, notSent = history.Refused, history.Unknown, history.NotSent
	type ends = map[string]history.Outcome
	const stays, written, replaced = "stays", "written", "replaced"
	for _, c := range []struct {
		status int // 0 is a reset connection
		code   string
		then   ends // what CAS returns if the value stays, was written, or was replaced since
	}{
		{412, "PreconditionFailed", ends{stays: unknown, written: unknown, replaced: refused}},
		{404, "NoSuchKey", ends{stays: unknown, written: unknown, replaced: refused}},
		{409, "ConditionalRequestConflict", ends{stays: unknown, written: unknown, replaced: refused}},
		{409, "OperationAborted", ends{stays: unknown, written: unknown, replaced: unknown}},
		{404, "NotFound", ends{stays: unknown, written: unknown, replaced: unknown}},
		{400, "BadDigest", ends{stays: unknown, written: unknown}},
		{307, "TemporaryRedirect", ends{stays: unknown, written: unknown}},
		{429, "TooManyRequests", ends{stays: unknown, written: unknown}},
		{500, "InternalError", ends{stays: unknown, written: unknown}},
		{503, "SlowDown", ends{stays: unknown, written: unknown}},
		{504, "GatewayTimeout", ends{stays: unknown, written: unknown}},
		{200, "InternalError", ends{stays: unknown, written: unknown}}, // an <Error>, and no ETag
		{0, "", ends{stays: unknown, written: unknown, replaced: unknown}},
		{403, "AccessDenied", ends{stays: notSent}},
		{403, "SignatureDoesNotMatch", ends{stays: notSent}},
		{403, "RequestTimeTooSkewed", ends{stays: notSent}},
		{404, "NoSuchBucket", ends{stays: notSent}},
		{400, "KeyTooLongError", ends{stays: notSent}},
		{501, "NotImplemented", ends{stays: notSent}},
	} {
		for then, want := range c.then {
			for _, old := range []string{"", "old"} {
				var f *fake
				var puts atomic.Int64
				var armed atomic.Bool
				answer := func(w http.ResponseWriter, q *http.Request) bool {
					if q.Method != http.MethodPut || !armed.Load() {
						return false
					}
					puts.Add(1)
					if then == replaced {
						f.store(strings.TrimPrefix(q.URL.Path, "/ids/"), "another", tagOf([]byte("another")))
					}
					if c.status == 0 {
						reset(w)
					} else {
						w.Header().Set("Location", "http://"+q.Host+q.URL.Path)
						fail(w, c.status, c.code)
					}
					return true
				}
				f = newFake(t, faults{before: answer})
				if then != stays {
					f = newFake(t, faults{after: answer})
				}
				s := unprobed(t, options(f.URL))
				if old != "" {
					calls.CAS(t, s, "a", "", old)
				}
				armed.Store(true)
				ok, err := s.CAS(t.Context(), "a", []byte(old), []byte("next"))
				if got := history.OutcomeOf(ok, err); got != want || puts.Load() != 1 {
					t.Errorf("CAS from %q, answer %d %s, and the value %s: %v, %v, after %d requests; want %v after 1",
						old, c.status, c.code, then, got, err, puts.Load(), want)
				}
				for _, secret := range []string{"Signature=", "Credential=", "testsecret"} {
					if err != nil && strings.Contains(err.Error(), secret) {
						t.Errorf("the error of CAS has %s: %v", secret, err)
					}
				}
				f.Close()
			}
		}
	}
}

// TestNotSent has a server that accepts no connection.
func TestNotSent(t *testing.T) {
	f := newFake(t, faults{})
	s := unprobed(t, options(f.URL))
	f.Close()
	calls.NotSent(t, s, "a", "", "next")
}

// TestPairs has a server that pairs a value with the ETag of an earlier one, as
// versitygw does once in a thousand reads, and an answer to a write with the
// ETag of other bytes.
func TestPairs(t *testing.T) {
	f := newFake(t, faults{})
	s := unprobed(t, options(f.URL))
	calls.CAS(t, s, "a", "", "old")
	f.store(s.prefix+"keys/a", "old", tagOf([]byte("earlier")))
	_, err := s.Get(t.Context(), "a")
	calls.Error(t, "Get", err, errPair)
	calls.Unknown(t, s, "a", "old", "next")
}

// TestNeverUnconditional checks that nothing but an ETag or If-None-Match: * is
// ever sent, and never both, whatever a server calls an ETag.
func TestNeverUnconditional(t *testing.T) {
	for _, tag := range []string{``, `"`, `""`, `*`, `abc`, `W/"abc"`, `"a", "b"`} {
		t.Run(tag, func(t *testing.T) {
			t.Parallel() // each waits between attempts to read
			f := newFake(t, faults{opaqueTags: true})
			s := unprobed(t, options(f.URL))
			s.opaque.Store(true)
			calls.CAS(t, s, "a", "", "old")
			f.store(s.prefix+"keys/a", "old", tag)
			writes := f.writes()
			calls.NotSent(t, s, "a", "old", "next")
			if f.writes() != writes {
				t.Errorf("CAS from the ETag %s writes", tag)
			}
		})
	}
}

// TestForeignObject has an object that no Store has written, of lengths around
// that of the part that a Store reads.
func TestForeignObject(t *testing.T) {
	for _, size := range []int{0, maxValue + 1, maxValue + 2, 6000} {
		body := strings.Repeat("x", size)
		f := newFake(t, faults{})
		s := unprobed(t, options(f.URL))
		calls.CAS(t, s, "b", "", "1")
		f.store(s.prefix+"keys/a", body, tagOf([]byte(body)))
		f.store(s.prefix+identityName, identityMark+body, tagOf([]byte(identityMark+body)))
		calls.Damaged(t, s, "a", "b", "no valid record")
		calls.NotSent(t, s, "a", "", "next", grant.ErrDamaged)
		_, _, err := s.Lineage(t.Context())
		calls.Error(t, fmt.Sprintf("Lineage of an object with %d bytes", size), err, grant.ErrDamaged)
	}
}
