package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// FuzzPaths: for any method, path, query, Accept and body, an answer is
// complete and the server's own: as many IDs as were taken, or a problem, and
// then none was. Requests that only read, and refused ones, change nothing.
// What was done is visible, and no sequencer has an invalid name or
// configuration.
func FuzzPaths(f *testing.F) {
	const path = "/v1/sequencers/orders"
	for _, row := range [][5]string{
		{"PUT", path, "", `{"layout":"hazelcast","window":"45s"}`},
		{"PUT", path, "", `{"max_ahead":"2562047h47m16.854775807s"}`},
		{"PUT", path, "", `{"layout":"bits=time:41.node:5.seq:12,unit=1ms,epoch=2026-01-01T00:00:00Z","window":"1ns"}`},
		{"PUT", "/v1/sequencers/%6frders", "x=1", `{}`},
		{"PUT", "/v1/sequencers/a%2Fb", "", ``},
		{"PUT", "/v1/sequencers/..", "", `{"layout":"uuidv7"}`},
		{"DELETE", "/v1/sequencers/there", "", ``},
		{"DELETE", "/v1/sequencers/there", "", `{}`},
		{"POST", "/v1/sequencers/there/detach", "", ``},
		{"POST", "/v1/sequencers/there/attach", "", ``},
		{"GET", "/v1/sequencers/there", "", ``},
		{"HEAD", "/v1/sequencers", "", ``},
		{"GET", "/v1/sequencers/new/next", "count=3", ``},
		{"POST", "/v1/sequencers/there/next", "count=3&format=raw", ``},
		{"POST", "/v1/sequencers/there/next", "count=300", ``, "*/*;q=0.1, application/octet-stream"},
		{"POST", "/v1/sequencers/there/next", "count=3&format=base62", ``, "text/plain"},
		{"GET", "/v1/sequencers/eu%3Aorders/next", "runs=true&count=7", ``, "application/json; charset=utf-8"},
		{"GET", "/v1/sequencers//next", "count=1&count=2&&%zz", ``, "a/b;q=2"},
		{"GET", "/v1/members", "", ``},
		{"GET", "/readyz", "", ``},
		{"GET", "/v1/inspect/5", "layout=bits=time:1", ``},
		{"OPTIONS", "*", "", ``},
		{"GET", "//v1//sequencers/../sequencers", "", ``},
	} {
		f.Add(row[0], row[1], row[2], row[3], row[4])
	}
	f.Fuzz(func(t *testing.T, method, path, query, body, accept string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || strings.ContainsAny(method, " \t\r\n") || method == "" {
			return // net/http would not call the handler
		}
		store := new(memstore.Store)
		backend := service.NewStoreBackend(service.StoreBackendConfig{Admin: service.NewStoreAdmin(store, nil)})
		defer backend.Close(context.Background())
		h := NewHandler(Config{Front: service.Front{Backend: backend, RequestTimeout: 10 * time.Second}})
		if w := nettest.Ask(h, "PUT", "/v1/sequencers/there", `{"layout":"default"}`); w.Code != 201 {
			t.Fatal(w.Body)
		}
		state := func() map[string]grant.Info {
			all := make(map[string]grant.Info)
			if err := backend.Sequencers(t.Context(), func(info grant.Info, err error) bool {
				if err != nil {
					t.Errorf("the record of %q: %v", info.Name, err)
				}
				if err := service.CheckName(info.Name); err != nil {
					t.Errorf("a sequencer was made: %v", err)
				}
				all[info.Name] = info
				return true
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := state()

		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Host, r.Method, r.URL = "localhost", method, u
		r.URL.RawQuery = query
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		after := state()
		taken := 0
		backend.Usage(func(_ string, s *service.Usage) { taken += int(s.IDs) })
		if taken != 0 && (w.Code != 200 || given(t, w) != taken) {
			t.Errorf("%d IDs were taken, and the answer is %d: %.200s", taken, w.Code, w.Body)
		}

		switch {
		case w.Code >= 500 && w.Code != 503 && w.Code != 507:
			t.Errorf("status %d: %s", w.Code, w.Body)
		case w.Code >= 400:
			var p problemJSON
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Detail == "" || !strings.HasPrefix(p.Type, "urn:firn:problem:") {
				t.Errorf("status %d, %v: %s", w.Code, err, w.Body)
			}
		case w.Code >= 300:
			to := w.Header().Get("Location") // of http.ServeMux, which cleans paths
			if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\") {
				t.Errorf("status %d leads to %q", w.Code, to)
			}
		case w.Code != 200 && w.Code != 201:
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		next := strings.HasSuffix(u.Path, "/next")
		// A GET takes IDs there, and a request that fails afterwards may have
		// created the name.
		if same := maps.Equal(before, after); !same && (w.Code >= 300 && !next || slices.Contains(readMethods, method) && !next) {
			t.Errorf("%s %s: status %d, and %v became %v", method, path, w.Code, before, after)
		}
		if method == "PUT" && w.Code < 300 {
			var got SequencerJSON
			must.Do(t, json.Unmarshal(w.Body.Bytes(), &got))
			info, ok := after[got.Name]
			layout, err := firn.ParseLayout(got.Layout)
			if !ok || err != nil || info.Config.Layout != layout || info.State.String() != got.State || info.Config.Check() != nil {
				t.Errorf("PUT says %+v (%v), and there is %+v, %v", got, err, info, info.Config.Check())
			}
		}
		if len(after) > len(before)+1 {
			t.Errorf("there are %d sequencers, and there were %d", len(after), len(before))
		}
	})
}

// given counts the 64-bit IDs in an answer.
func given(t *testing.T, w *httptest.ResponseRecorder) (n int) {
	t.Helper()
	switch w.Header().Get("Content-Type") {
	case "application/octet-stream":
		return w.Body.Len() / 8
	case "text/plain; charset=utf-8":
		return strings.Count(w.Body.String(), "\n")
	}
	var v struct {
		IDs  []string
		Runs []struct{ Count int }
	}
	must.Do(t, json.Unmarshal(w.Body.Bytes(), &v))
	for _, r := range v.Runs {
		n += r.Count
	}
	return n + len(v.IDs)
}
