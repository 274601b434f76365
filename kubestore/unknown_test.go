//go:build unix

package kubestore

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/history"
	"github.com/firnid/firn/internal/test/must"
)

// A class is a way in which the answer to a write is lost or corrupted.
type class struct {
	name   string
	denial bool // the API server reports that it has not accepted it
	spoil  func(w http.ResponseWriter, q *http.Request, a passed)
}

func status(code int, reason string) class {
	return class{
		name:  strings.TrimSpace(fmt.Sprint(code, " ", reason)),
		spoil: func(w http.ResponseWriter, _ *http.Request, _ passed) { answer(w, code, reason) },
	}
}

func denied(code int, reason string) class {
	c := status(code, reason)
	c.denial = true
	return c
}

// classes are all errors with which a write can end.
var classes = []class{
	status(429, "TooManyRequests"), status(429, ""), status(408, "Timeout"),
	status(500, "InternalError"), status(500, ""), status(502, ""), status(503, "ServiceUnavailable"), status(503, ""), status(504, "Timeout"), status(504, ""),
	status(409, ""), status(409, "Conflict"), status(403, ""), status(404, ""), status(422, ""), status(307, ""), status(308, ""),
	denied(400, "BadRequest"), denied(401, "Unauthorized"), denied(403, "Forbidden"), denied(404, "NotFound"), denied(413, "RequestEntityTooLarge"), denied(422, "Invalid"),
	{name: "connection lost", spoil: func(w http.ResponseWriter, _ *http.Request, _ passed) { cut(w, nil) }},
	{name: "answer cut in its header", spoil: func(w http.ResponseWriter, _ *http.Request, _ passed) {
		cut(w, []byte("HTTP/1.1 200 OK\r\nContent-Le"))
	}},
	{name: "answer cut in its body", spoil: func(w http.ResponseWriter, _ *http.Request, a passed) {
		cut(w, fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(a.body)+100, a.body))
	}},
	{name: "answer of something else", spoil: func(w http.ResponseWriter, _ *http.Request, _ passed) {
		_, _ = w.Write([]byte("<html>maintenance</html>"))
	}},
	{name: "empty success", spoil: func(w http.ResponseWriter, _ *http.Request, _ passed) { w.WriteHeader(http.StatusOK) }},
	{name: "timeout", spoil: func(_ http.ResponseWriter, q *http.Request, _ passed) { <-q.Context().Done() }},
}

// TestErrorClasses covers every error of a write that creates or replaces, at
// every point: before the API server has the write, after it has applied it,
// after a copy of it was applied, and after that was replaced by another one. A
// CAS never reports an applied write as not applied, is sent once, and can be
// settled by another one.
func TestErrorClasses(t *testing.T) {
	_, p, _, s, direct := proxied(t)
	cuts := map[string]int{"before": 0, "after": 1, "after a copy": 2, "after it was replaced": 3}
	results := make(map[history.Outcome]int)
	n := 0
	for _, class := range classes {
		for cutName, cut := range cuts {
			for _, old := range []string{"", "old"} {
				n++
				key := fmt.Sprintf("k/%d", n)
				if old != "" {
					calls.CAS(t, direct, key, "", old)
				}
				ctx, cancel := context.WithCancel(t.Context())
				p.setWrites(func(w http.ResponseWriter, q *http.Request, pass func() passed) {
					var a passed
					for range min(cut, 2) {
						a = pass()
					}
					if cut == 3 {
						calls.CAS(t, direct, key, "new", "of another")
					}
					if class.name == "timeout" {
						cancel()
					}
					class.spoil(w, q, a)
				})
				before := p.writes.Load()
				ok, err := s.CAS(ctx, key, []byte(old), []byte("new"))
				cancel()
				p.set(nil)
				want := history.Unknown
				if cut == 0 && class.denial {
					want = history.NotSent
				}
				if got, sent := history.OutcomeOf(ok, err), p.writes.Load()-before; got != want || sent != 1 {
					t.Errorf("%s %s: CAS from %q = %v, %v, and was sent %d times, want it %v, and sent once",
						class.name, cutName, old, ok, err, sent, want)
				}
				results[want]++
				calls.CAS(t, s, key, string(must.Get(s.Get(t.Context(), key))(t)), "settled")
			}
		}
	}
	t.Logf("report: kubernetes store: %d writes with %d kinds of errors at %d cuts: %d unknown, %d certainly not sent",
		n, len(classes), len(cuts), results[history.Unknown], results[history.NotSent])
}

// TestRepeatedWrite: a load balancer sends a write twice, and returns the
// second answer, which is a conflict with the first.
func TestRepeatedWrite(t *testing.T) {
	_, p, _, s, direct := proxied(t)
	for i, between := range [][]string{{}, {"x"}, {"x", "y"}, {"old"}} { // the values in between
		for _, old := range []string{"", "old"} {
			key := fmt.Sprintf("k/%d%s", i, old)
			if old != "" {
				calls.CAS(t, direct, key, "", old)
			}
			p.setWrites(func(w http.ResponseWriter, _ *http.Request, pass func() passed) {
				pass()
				last := "new"
				for _, value := range between {
					calls.CAS(t, direct, key, last, value)
					last = value
				}
				a := pass()
				if a.code != http.StatusConflict {
					t.Errorf("from %q, then %q: the copy is answered %d, want 409", old, between, a.code)
				}
				a.to(w)
			})
			calls.Unknown(t, s, key, old, "new") // it was applied
			p.set(nil)
		}
	}
}

// TestNotApplied: a CAS that loses a race, or that finds another value, is
// certainly not applied.
func TestNotApplied(t *testing.T) {
	c, p, namespace, s, direct := proxied(t)
	lease := func(key string) string {
		name, _ := nameOf("firn", key)
		return fmt.Sprintf(leasesPath, namespace) + name
	}
	patch := func(key, body string) {
		t.Helper()
		if code, text := c.Patch(lease(key), body); code != http.StatusOK {
			t.Errorf("patch: %d %s", code, text)
		}
	}
	for name, tt := range map[string]struct {
		old    string
		before func(key string) // between the store's read and its write
		ok     bool
	}{
		"created by another":        {"", func(key string) { calls.CAS(t, direct, key, "", "x") }, false},
		"created alike by another":  {"", func(key string) { calls.CAS(t, direct, key, "", "new") }, false},
		"replaced by another":       {"old", func(key string) { calls.CAS(t, direct, key, "old", "x") }, false},
		"replaced alike by another": {"old", func(key string) { calls.CAS(t, direct, key, "old", "new") }, false},
		"deleted":                   {"old", func(key string) { c.Must("DELETE", lease(key), "") }, false},
		"deleted and created": {"old", func(key string) {
			c.Must("DELETE", lease(key), "")
			calls.CAS(t, direct, key, "", "old")
		}, false},
		"a label of another": {"old", func(key string) { patch(key, `{"metadata":{"labels":{"team":"a"}}}`) }, true},
		"an annotation, and another one": {"old", func(key string) {
			patch(key, `{"metadata":{"annotations":{"a":"1"}}}`)
			patch(key, `{"metadata":{"annotations":{"a":"2"}}}`)
		}, true},
	} {
		key := "k/" + strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
		if tt.old != "" {
			calls.CAS(t, direct, key, "", tt.old)
		}
		done := false
		p.set(func(_ http.ResponseWriter, q *http.Request, _ func() passed) bool {
			if q.Method != http.MethodGet && !done {
				done = true
				tt.before(key)
			}
			return false
		})
		ok, err := s.CAS(t.Context(), key, []byte(tt.old), []byte("new"))
		p.set(nil)
		if ok != tt.ok || err != nil {
			t.Errorf("%s: CAS = %v, %v, want %v", name, ok, err, tt.ok)
		}
	}
	if text := string(c.Must("GET", lease("k/a-label-of-another"), "")); !strings.Contains(text, `"team":"a"`) {
		t.Errorf("the label of another program is lost: %s", text)
	}
}

// TestChangedByAdmission: a write whose record is changed by admission does not
// count as applied.
func TestChangedByAdmission(t *testing.T) {
	_, p, _, s, _ := proxied(t)
	p.setWrites(func(w http.ResponseWriter, _ *http.Request, pass func() passed) {
		answer := pass()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.code)
		_, _ = w.Write(bytes.Replace(answer.body, []byte(`"firn/record":"new"`), []byte(`"firn/record":"cut"`), 1))
	})
	calls.Unknown(t, s, "k", "", "new", "another record")
}

// TestUnchangedPut: a write that was already applied, repeated by a proxy or
// seen as unchanged by a server, gets a success that does not belong to this
// write.
func TestUnchangedPut(t *testing.T) {
	_, p, _, s, _ := proxied(t)
	calls.CAS(t, s, "k", "", "old")
	p.set(func(w http.ResponseWriter, q *http.Request, pass func() passed) bool {
		if q.Method != http.MethodPut {
			return false
		}
		// The unchanged object, written again.
		read := q.Clone(q.Context())
		read.Method = http.MethodGet
		now := p.pass(read, nil)
		a := p.pass(q, now.body)
		if a.code != http.StatusOK {
			t.Errorf("an unchanged PUT is answered %d, want 200", a.code)
		}
		a.to(w)
		return true
	})
	calls.Unknown(t, s, "k", "old", "new", "another write")
	p.set(nil)
	calls.Get(t, s, "k", "old")
}

// TestUnreachable: what cannot be sent is certainly not applied, and reads are
// retried.
func TestUnreachable(t *testing.T) {
	c, p, namespace, s, _ := proxied(t)
	calls.CAS(t, s, "k", "", "1")
	for _, class := range classes[:len(classes)-1] { // a timeout ends with its context
		if class.denial || strings.HasPrefix(class.name, "3") || strings.HasPrefix(class.name, "4") && !strings.HasPrefix(class.name, "429") && !strings.HasPrefix(class.name, "408") {
			continue
		}
		fails := 2
		p.set(func(w http.ResponseWriter, q *http.Request, pass func() passed) bool {
			if fails--; fails < 0 {
				return false
			}
			class.spoil(w, q, pass())
			return true
		})
		calls.Get(t, s, "k", "1") // it tries again, twice
		p.set(nil)
	}
	// An answer that does not come from the API does not count as an absent key
	// or an empty list.
	for _, text := range []string{"", "{}", "[]", "null", `{"items":[]}`, `{"kind":"Status","status":"Success"}`, "<html>"} {
		p.set(func(w http.ResponseWriter, _ *http.Request, _ func() passed) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
			return true
		})
		for what, err := range calls.Reads(t, s, "k") {
			calls.Error(t, fmt.Sprintf("%s answered by %q", what, text), err)
		}
		p.set(nil)
	}
	for _, code := range []int{404, 410} {
		p.set(func(w http.ResponseWriter, _ *http.Request, _ func() passed) bool { answer(w, code, ""); return true })
		_, err := s.Get(t.Context(), "k")
		calls.Error(t, fmt.Sprintf("Get answered by %d of a proxy", code), err)
		p.set(nil)
	}
	gone := open(t, Options{Kubeconfig: c.Kubeconfig(p.url, namespace, "")})
	gone.leases.Host = "127.0.0.1:1"
	calls.NotSent(t, gone, "k2", "", "2")
	calls.NotSent(t, gone, "k2", "1", "2")
}
