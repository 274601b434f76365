package httpapi

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/service"
)

// FuzzNextRequest: every answer is complete: as many IDs as the count, or a
// problem, and then none was taken.
func FuzzNextRequest(f *testing.F) {
	const path = "/v1/sequencers/orders/next"
	f.Add("GET", path, "", "")
	f.Add("POST", path, "count=3&format=base62", "text/plain")
	f.Add("POST", path, "count=100000&format=raw", "*/*;q=0.1, application/octet-stream")
	f.Add("GET", "/v1/sequencers/eu%3Aorders/next", "runs=true&count=7", "application/json; charset=utf-8")
	f.Add("GET", "/v1/sequencers//next", "count=1&count=2&&%zz", "a/b;q=2")
	f.Add("HEAD", "/v1/inspect/117232478720118790", "layout=default&from=dec", "")
	f.Add("GET", "/v1/inspect/%ff", "layout=bits=time:41.node:10.seq:12,unit=1ms", "*")
	f.Fuzz(func(t *testing.T, method, path, query, accept string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || strings.ContainsAny(method, " \t\r\n") || method == "" {
			return // net/http would not call the handler
		}
		backend := newStatic(t, fast)
		h := NewHandler(Config{Backend: backend})
		r := httptest.NewRequest("GET", "/", nil)
		r.Host, r.Method, r.URL = "localhost", method, u
		r.URL.RawQuery = query
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)

		taken := 0
		backend.Stats(func(name string, s firn.Stats) {
			if err := service.CheckName(name); err != nil {
				t.Errorf("a sequencer was made: %v", err)
			}
			taken += int(s.IDs)
		})
		body := w.Body.String()
		if w.Code != 200 {
			var p problemJSON
			if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != w.Code || p.Detail == "" || w.Code < 400 {
				t.Errorf("status %d, %v: %s", w.Code, err, body)
			}
			if w.Code >= 500 && w.Code != 507 {
				t.Errorf("status %d: %s", w.Code, body)
			}
			if taken != 0 {
				t.Errorf("status %d, and %d IDs were taken", w.Code, taken)
			}
			return
		}
		if taken == 0 {
			return // some other path
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Errorf("accepted an invalid query: %v", err)
		}
		count := 1
		if text := values.Get("count"); text != "" {
			id, err := firn.ParseID(text)
			if err != nil {
				t.Errorf("accepted the count %q", text)
			}
			count = int(id)
		}
		if taken != count {
			t.Errorf("%d IDs were taken, want %d", taken, count)
		}
		switch got := w.Header().Get("Content-Type"); got {
		case "application/json":
			var v struct {
				IDs  []string
				Runs []struct {
					First, Step string
					Count       int
				}
			}
			if err := json.Unmarshal([]byte(body), &v); err != nil {
				t.Fatalf("%v: %.200s", err, body)
			}
			n := len(v.IDs)
			for _, r := range v.Runs {
				n += r.Count
			}
			if n != count {
				t.Errorf("%d IDs in JSON, want %d", n, count)
			}
		case "text/plain; charset=utf-8":
			if n := strings.Count(body, "\n"); n != count || !strings.HasSuffix(body, "\n") {
				t.Errorf("%d lines, want %d", n, count)
			}
		case "application/octet-stream":
			if len(body) != 8*count {
				t.Errorf("%d octets, want %d", len(body), 8*count)
			}
		default:
			t.Errorf("Content-Type = %q", got)
		}
	})
}
