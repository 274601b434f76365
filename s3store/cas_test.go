package s3store

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
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
	const applied, refused, unknown, notSent = "applied", "refused", "unknown", "not sent"
	const stays, written, replaced = "stays", "written", "replaced"
	for _, c := range []struct {
		status int // 0 is a reset connection
		code   string
		then   map[string]string // what CAS returns if the value stays, was written, or was replaced since
	}{
		{412, "PreconditionFailed", map[string]string{stays: unknown, written: unknown, replaced: refused}},
		{404, "NoSuchKey", map[string]string{stays: unknown, written: unknown, replaced: refused}},
		{409, "ConditionalRequestConflict", map[string]string{stays: unknown, written: unknown, replaced: refused}},
		{409, "OperationAborted", map[string]string{stays: unknown, written: unknown, replaced: unknown}},
		{404, "NotFound", map[string]string{stays: unknown, written: unknown, replaced: unknown}},
		{400, "BadDigest", map[string]string{stays: unknown, written: unknown}},
		{307, "TemporaryRedirect", map[string]string{stays: unknown, written: unknown}},
		{429, "TooManyRequests", map[string]string{stays: unknown, written: unknown}},
		{500, "InternalError", map[string]string{stays: unknown, written: unknown}},
		{503, "SlowDown", map[string]string{stays: unknown, written: unknown}},
		{504, "GatewayTimeout", map[string]string{stays: unknown, written: unknown}},
		{200, "InternalError", map[string]string{stays: unknown, written: unknown}}, // an <Error>, and no ETag
		{0, "", map[string]string{stays: unknown, written: unknown, replaced: unknown}},
		{403, "AccessDenied", map[string]string{stays: notSent}},
		{403, "SignatureDoesNotMatch", map[string]string{stays: notSent}},
		{403, "RequestTimeTooSkewed", map[string]string{stays: notSent}},
		{404, "NoSuchBucket", map[string]string{stays: notSent}},
		{400, "KeyTooLongError", map[string]string{stays: notSent}},
		{501, "NotImplemented", map[string]string{stays: notSent}},
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
						f.mu.Lock()
						f.objects[strings.TrimPrefix(q.URL.Path, "/ids/")].body = []byte("another")
						f.objects[strings.TrimPrefix(q.URL.Path, "/ids/")].tag = tagOf([]byte("another"))
						f.mu.Unlock()
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
					must.Get(s.CAS(t.Context(), "a", nil, []byte(old)))(t)
				}
				armed.Store(true)
				ok, err := s.CAS(t.Context(), "a", []byte(old), []byte("next"))
				got := unknown
				switch {
				case ok:
					got = applied
				case err == nil:
					got = refused
				case errors.Is(err, grant.ErrNotSent):
					got = notSent
				}
				if got != want || puts.Load() != 1 {
					t.Errorf("CAS from %q, answer %d %s, and the value %s: %s, %v, after %d requests; want %s after 1", old,
						c.status, c.code, then, got, err, puts.Load(), want)
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
	if ok, err := s.CAS(t.Context(), "a", nil, []byte("next")); ok || !errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS without a server = %v, %v, want an error that matches ErrNotSent", ok, err)
	}
}

// TestPairs has a server that pairs a value with the ETag of an earlier one, as
// versitygw does once in a thousand reads, and an answer to a write with the
// ETag of other bytes.
func TestPairs(t *testing.T) {
	f := newFake(t, faults{})
	s := unprobed(t, options(f.URL))
	must.Get(s.CAS(t.Context(), "a", nil, []byte("old")))(t)
	f.mu.Lock()
	o := f.objects[s.prefix+"keys/a"]
	o.tag = tagOf([]byte("earlier"))
	f.mu.Unlock()
	if value, err := s.Get(t.Context(), "a"); !errors.Is(err, errPair) {
		t.Errorf("Get = %q, %v, want errPair", value, err)
	}
	if ok, err := s.CAS(t.Context(), "a", []byte("old"), []byte("next")); ok || err == nil || errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS = %v, %v, want an unknown result", ok, err)
	}
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
			must.Get(s.CAS(t.Context(), "a", nil, []byte("old")))(t)
			f.mu.Lock()
			f.objects[s.prefix+"keys/a"].tag = tag
			f.mu.Unlock()
			writes := f.writes()
			ok, err := s.CAS(t.Context(), "a", []byte("old"), []byte("next"))
			if ok || !errors.Is(err, grant.ErrNotSent) || f.writes() != writes {
				t.Errorf("CAS from the ETag %s = %v, %v, after %d writes, want an error that matches ErrNotSent", tag, ok, err,
					f.writes()-writes)
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
		f.objects[s.prefix+"keys/a"] = &stored{body: []byte(body), tag: tagOf([]byte(body))}
		named := identityMark + body
		f.objects[s.prefix+identityName] = &stored{body: []byte(named), tag: tagOf([]byte(named))}
		if identity, _, err := s.Lineage(t.Context()); !errors.Is(err, grant.ErrDamaged) {
			t.Errorf("Lineage of an object with %d bytes = %q, %v, want ErrDamaged", len(named), identity, err)
		}
		if value, err := s.Get(t.Context(), "a"); !errors.Is(err, grant.ErrDamaged) || !errors.Is(err, grant.ErrNotSent) {
			t.Errorf("Get of an object with %d bytes = %q, %v, want ErrDamaged", len(body), value, err)
		}
		if ok, err := s.CAS(t.Context(), "a", nil, []byte("next")); ok || !errors.Is(err, grant.ErrDamaged) {
			t.Errorf("CAS of an object with %d bytes = %v, %v, want ErrDamaged", len(body), ok, err)
		}
		values, err := s.GetMany(t.Context(), []string{"a", "b"})
		if err != nil || !strings.Contains(string(values[0]), "no valid record") || values[1] != nil {
			t.Errorf("GetMany = %q, %v, want the text of the error", values, err)
		}
	}
}
