//go:build unix

package kubestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
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
	results := make(map[string]int)
	n := 0
	for _, class := range classes {
		for cutName, cut := range cuts {
			for _, what := range []string{"create", "replace"} {
				n++
				key := fmt.Sprintf("k/%d", n)
				name := class.name + " " + cutName + " " + what
				var old []byte
				if what == "replace" {
					old = []byte("old")
					mustCAS(t, direct, key, nil, old)
				}
				ctx, cancel := context.WithCancel(t.Context())
				p.setWrites(func(w http.ResponseWriter, q *http.Request, pass func() passed) {
					var a passed
					for range min(cut, 2) {
						a = pass()
					}
					if cut == 3 {
						mustCAS(t, direct, key, []byte("new"), []byte("of another"))
					}
					if class.name == "timeout" {
						cancel()
					}
					class.spoil(w, q, a)
				})
				before := p.writes.Load()
				ok, err := s.CAS(ctx, key, old, []byte("new"))
				cancel()
				p.set(nil)
				if sent := p.writes.Load() - before; sent != 1 {
					t.Errorf("%s: the write was sent %d times, want 1", name, sent)
				}
				isNotSent := errors.Is(err, grant.ErrNotSent)
				switch {
				case ok || err == nil:
					t.Errorf("%s: CAS = %v, %v, want an error", name, ok, err)
				case cut > 0 && isNotSent:
					t.Errorf("%s: CAS = %v, and it was applied", name, err)
				case cut == 0 && class.denial && !isNotSent:
					t.Errorf("%s: CAS = %v, want grant.ErrNotSent", name, err)
				case cut == 0 && !class.denial && isNotSent:
					t.Errorf("%s: CAS = %v, want an unknown result", name, err)
				}
				if isNotSent {
					results["not sent"]++
				} else {
					results["unknown"]++
				}
				now := must.Get(s.Get(t.Context(), key))(t)
				mustCAS(t, s, key, now, []byte("settled"))
			}
		}
	}
	t.Logf("report: kubernetes store: %d writes with %d kinds of errors at %d cuts: %d unknown, %d certainly not sent", n, len(classes), len(cuts), results["unknown"], results["not sent"])
}

func mustCAS(t testing.TB, s grant.Store, key string, old, next []byte) {
	t.Helper()
	if ok, err := s.CAS(t.Context(), key, old, next); !ok || err != nil {
		t.Errorf("CAS(%q, %q, %q) = %v, %v, want true", key, old, next, ok, err)
	}
}

// TestRepeatedWrite: a load balancer sends a write twice, and returns the
// second answer, which is a conflict with the first.
func TestRepeatedWrite(t *testing.T) {
	_, p, _, s, direct := proxied(t)
	for _, between := range []string{"", "replaced", "replaced twice", "back to what it was"} {
		for _, what := range []string{"create", "replace"} {
			key := "k/" + what + strings.ReplaceAll(between, " ", "-")
			var old []byte
			if what == "replace" {
				old = []byte("old")
				mustCAS(t, direct, key, nil, old)
			}
			p.setWrites(func(w http.ResponseWriter, _ *http.Request, pass func() passed) {
				pass()
				switch between {
				case "replaced":
					mustCAS(t, direct, key, []byte("new"), []byte("x"))
				case "replaced twice":
					mustCAS(t, direct, key, []byte("new"), []byte("x"))
					mustCAS(t, direct, key, []byte("x"), []byte("y"))
				case "back to what it was":
					mustCAS(t, direct, key, []byte("new"), []byte("old"))
				}
				a := pass()
				if a.code != http.StatusConflict {
					t.Errorf("%s, %s: the copy is answered %d, want 409", what, between, a.code)
				}
				a.to(w)
			})
			ok, err := s.CAS(t.Context(), key, old, []byte("new"))
			p.set(nil)
			if ok || err == nil || errors.Is(err, grant.ErrNotSent) {
				t.Errorf("%s sent twice, %s: CAS = %v, %v, want an unknown result: it was applied", what, between, ok, err)
			}
		}
	}
}

// TestNotApplied: a CAS that loses a race, or that finds another value, is
// certainly not applied.
func TestNotApplied(t *testing.T) {
	c, p, namespace, s, direct := proxied(t)
	lease := func(key string) string {
		name, _ := nameOf("firn", key)
		return "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/" + name
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
		"created by another":        {"", func(key string) { mustCAS(t, direct, key, nil, []byte("x")) }, false},
		"created alike by another":  {"", func(key string) { mustCAS(t, direct, key, nil, []byte("new")) }, false},
		"replaced by another":       {"old", func(key string) { mustCAS(t, direct, key, []byte("old"), []byte("x")) }, false},
		"replaced alike by another": {"old", func(key string) { mustCAS(t, direct, key, []byte("old"), []byte("new")) }, false},
		"deleted":                   {"old", func(key string) { c.Must("DELETE", lease(key), "") }, false},
		"deleted and created":       {"old", func(key string) { c.Must("DELETE", lease(key), ""); mustCAS(t, direct, key, nil, []byte("old")) }, false},
		"a label of another":        {"old", func(key string) { patch(key, `{"metadata":{"labels":{"team":"a"}}}`) }, true},
		"an annotation, and another one": {"old", func(key string) {
			patch(key, `{"metadata":{"annotations":{"a":"1"}}}`)
			patch(key, `{"metadata":{"annotations":{"a":"2"}}}`)
		}, true},
	} {
		key := "k/" + strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
		var old []byte
		if tt.old != "" {
			old = []byte(tt.old)
			mustCAS(t, direct, key, nil, old)
		}
		done := false
		p.set(func(_ http.ResponseWriter, q *http.Request, _ func() passed) bool {
			if q.Method != http.MethodGet && !done {
				done = true
				tt.before(key)
			}
			return false
		})
		ok, err := s.CAS(t.Context(), key, old, []byte("new"))
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
	ok, err := s.CAS(t.Context(), "k", nil, []byte("new"))
	p.set(nil)
	if ok || err == nil || errors.Is(err, grant.ErrNotSent) || !strings.Contains(err.Error(), "another record") {
		t.Errorf("CAS = %v, %v, want an unknown result, because the answer shows another record", ok, err)
	}
}

// TestUnchangedPut: a write that was already applied, repeated by a proxy or
// seen as unchanged by a server, gets a success that does not belong to this
// write.
func TestUnchangedPut(t *testing.T) {
	_, p, _, s, _ := proxied(t)
	mustCAS(t, s, "k", nil, []byte("old"))
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
	ok, err := s.CAS(t.Context(), "k", []byte("old"), []byte("new"))
	p.set(nil)
	if ok || err == nil || errors.Is(err, grant.ErrNotSent) {
		t.Errorf("CAS answered by an unchanged PUT = %v, %v, want an unknown result", ok, err)
	}
	if v, err := s.Get(t.Context(), "k"); string(v) != "old" || err != nil {
		t.Errorf("Get = %q, %v, want old", v, err)
	}
}

// TestUnreachable: what cannot be sent is certainly not applied, and reads are
// retried.
func TestUnreachable(t *testing.T) {
	c, p, namespace, s, _ := proxied(t)
	mustCAS(t, s, "k", nil, []byte("1"))
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
		if v, err := s.Get(t.Context(), "k"); string(v) != "1" || err != nil {
			t.Errorf("%s, twice: Get = %q, %v, want it to be tried again", class.name, v, err)
		}
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
		if v, err := s.Get(t.Context(), "k"); err == nil {
			t.Errorf("Get answered by %q = %q, want an error", text, v)
		}
		if err := s.List(t.Context(), "", func(string, []byte) bool { return true }); err == nil {
			t.Errorf("List answered by %q is no error", text)
		}
		if id, _, err := s.Lineage(t.Context()); err == nil {
			t.Errorf("Lineage answered by %q = %q, want an error", text, id)
		}
		p.set(nil)
	}
	for _, code := range []int{404, 410} {
		p.set(func(w http.ResponseWriter, _ *http.Request, _ func() passed) bool { answer(w, code, ""); return true })
		if v, err := s.Get(t.Context(), "k"); err == nil {
			t.Errorf("Get answered by %d of a proxy = %q, want an error", code, v)
		}
		p.set(nil)
	}
	gone := open(t, Options{Kubeconfig: c.Kubeconfig(p.url, namespace, "")})
	gone.leases.Host = "127.0.0.1:1"
	for _, old := range [][]byte{nil, []byte("1")} {
		if ok, err := gone.CAS(t.Context(), "k2", old, []byte("2")); ok || !errors.Is(err, grant.ErrNotSent) {
			t.Errorf("CAS where nothing listens = %v, %v, want grant.ErrNotSent", ok, err)
		}
	}
}
