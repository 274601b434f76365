package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
	"github.com/firnid/firn/veil"
)

// idsOf parses the IDs in a JSON answer.
func idsOf(t *testing.T, body string) []string {
	t.Helper()
	var v struct{ IDs []string }
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return v.IDs
}

// TestNextForms: every form of a request gives the same IDs. Each row has its
// own backend, and all clocks agree.
func TestNextForms(t *testing.T) { synctest.Test(t, testNextForms) }

func testNextForms(t *testing.T) {
	const path = "/v1/sequencers/orders/next"
	short := must.Get(firn.ParseFormat("flake16"))(t)
	for _, layout := range []string{
		"default,even=0", "hazelcast", "js53", "boundary",
		"lable", // not ordered
		// The texts of one batch differ in length.
		"bits=time:50.node:7.seq:2,epoch=2026-11-20T11:59:58Z", "bits=time:64.node:60.seq:4,epoch=2026-11-20T11:59:58Z",
	} {
		l := firn.MustParseLayout(layout)
		for _, count := range []int{1, 2, 300, 5000} {
			for _, row := range []struct {
				query, accept string
				wantType      string
				format        firn.Format
			}{
				{"", "", "application/json", l.Format()},
				{"", "*/*", "application/json", l.Format()},
				{"", "application/*", "application/json", l.Format()},
				{"", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json", l.Format()},
				{"", "text/plain", "text/plain; charset=utf-8", l.Format()},
				{"", "text/*", "text/plain; charset=utf-8", l.Format()},
				{"", "application/json;q=0.5, text/plain", "text/plain; charset=utf-8", l.Format()},
				{"&format=base62", "", "application/json", firn.Base62},
				{"&format=flake16", "text/plain", "text/plain; charset=utf-8", short},
				{"&format=base32", "text/plain, application/octet-stream", "text/plain; charset=utf-8", firn.Base32},
				{"", "application/octet-stream", "application/octet-stream", firn.Raw},
				{"&format=raw", "", "application/octet-stream", firn.Raw},
				{"&format=raw", "*/*", "application/octet-stream", firn.Raw},
				{"&format=raw&runs=false", "application/*", "application/octet-stream", firn.Raw},
			} {
				name := fmt.Sprintf("%s/%d%s/%s", layout, count, row.query, row.accept)
				backend := newStatic(t, layout)
				h := NewHandler(Config{Front: service.Front{Backend: backend}})
				w := do(h, "GET", fmt.Sprintf("%s?count=%d%s", path, count, row.query), "Accept: "+row.accept)
				if w.Code != 200 {
					t.Fatalf("%s: status %d: %s", name, w.Code, w.Body)
				}
				if got := w.Header().Get("Content-Type"); got != row.wantType {
					t.Errorf("%s: Content-Type = %q, want %q", name, got, row.wantType)
				}
				if got := w.Header().Get("Cache-Control"); got != "no-store" {
					t.Errorf("%s: Cache-Control = %q, want no-store", name, got)
				}
				if got := stats(t, backend, "orders").IDs; got != uint64(count) {
					t.Errorf("%s: the generator has made %d IDs, want %d", name, got, count)
				}

				var got []string
				switch row.wantType {
				case "application/json":
					got = idsOf(t, w.Body.String())
				case "application/octet-stream":
					size := l.Bits() / 8
					if got, want := w.Header().Get("Content-Length"), fmt.Sprint(count*size); got != want {
						t.Errorf("%s: Content-Length = %s, want %s", name, got, want)
					}
					for b := range slices.Chunk(w.Body.Bytes(), size) {
						got = append(got, string(b))
					}
				default:
					text, ok := strings.CutSuffix(w.Body.String(), "\n")
					if !ok {
						t.Errorf("%s: the last line has no end", name)
					}
					got = strings.Split(text, "\n")
				}
				var want []string
				b, f := firstBatch(t, layout, count), form.Of(row.format)
				for id := range b.All {
					want = append(want, string(id.Append(nil, &f)))
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: IDs are %.200q, want %.200q", name, got, want)
				}
			}
		}
	}
}

// firstBatch returns the first batch of a newStatic sequencer.
func firstBatch(t *testing.T, layout string, count int) service.Batch {
	t.Helper()
	s := must.Get(newStatic(t, layout).Sequencer(t.Context(), "orders", nil))(t)
	return must.Get(s.Take(t.Context(), count))(t)
}

// TestNextRuns: the runs of an answer are those of the batch.
func TestNextRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			layout, query string
			format        firn.Format
			wantRuns      int
		}{
			{"default", "&format=hex", firn.Hex, 2},
			{"hazelcast", "", firn.Decimal, 1},                                   // time and sequence are one number
			{"bits=time:40.node:8.seq:6,epoch=2026-01-01T00:00:00Z", "", 0, 94},  // 6000 IDs are 64 in each tick
			{"bits=time:40.node:8.seq:0,unit=1ms,epoch=1760000000000", "", 0, 1}, // no sequence: the time counts
			{"lable", "", firn.Decimal, 94},
			{"boundary", "", firn.UUID, 1},
		} {
			w := do(NewHandler(Config{Front: service.Front{Backend: newStatic(t, row.layout)}}), "POST", "/v1/sequencers/orders/next?count=6000&runs=true"+row.query)
			type run struct {
				First, Step string
				Count       int
			}
			var got struct{ Runs []run }
			d := json.NewDecoder(w.Body)
			d.DisallowUnknownFields()
			if err := d.Decode(&got); err != nil || w.Code != 200 {
				t.Errorf("%s%s: status %d, %v", row.layout, row.query, w.Code, err)
				continue
			}
			var want []run
			b, f := firstBatch(t, row.layout, 6000), form.Of(row.format)
			for _, r := range b.Runs() {
				want = append(want, run{string(r.First.Append(nil, &f)), fmt.Sprint(r.Step), r.Count})
			}
			if len(got.Runs) != row.wantRuns || !slices.Equal(got.Runs, want) {
				t.Errorf("%s%s: %d runs, %.200v, want %d, %.200v", row.layout, row.query, len(got.Runs), got.Runs, row.wantRuns, want)
			}
		}
	})
}

// TestNextRefusals: a refused request takes nothing, and the problem says how
// to fix it.
func TestNextRefusals(t *testing.T) {
	const path = "/v1/sequencers/orders/next"
	for _, row := range []struct {
		target  string
		headers []string
		kind    service.Kind
		texts   []string
		layout  string
	}{
		{target: path + "?count=0", kind: service.BadParameter, texts: []string{`"0"`, "1 to 100000"}},
		{target: path + "?count=100001", kind: service.BatchTooLarge, texts: []string{`"100001"`, "1 to 100000"}},
		{target: path + "?count=99999999999999999999x", kind: service.BadParameter, texts: []string{"1 to 100000"}},
		{target: path + "?count=-1", kind: service.BadParameter, texts: []string{`"-1"`}},
		{target: path + "?count=%2B1", kind: service.BadParameter, texts: []string{`"+1"`}},
		{target: path + "?count=1e3", kind: service.BadParameter, texts: []string{`"1e3"`}},
		{target: path + "?count=1.0", kind: service.BadParameter, texts: []string{`"1.0"`}},
		{target: path + "?count=18446744073709551617", kind: service.BatchTooLarge, texts: []string{"1 to 100000"}},
		{target: path + "?count=", kind: service.BadParameter, texts: []string{"count has no value"}},
		{target: path + "?count", kind: service.BadParameter, texts: []string{"count has no value"}},
		{target: path + "?count=1&count=2", kind: service.BadParameter, texts: []string{"count is given twice"}},
		{target: path + "?n=3", kind: service.BadParameter, texts: []string{`unknown parameter "n"`, "count, format and runs"}},
		{target: path + "?Count=3", kind: service.BadParameter, texts: []string{`"Count"`}},
		{target: path + "?n=3&count=1&count=2&runs", kind: service.BadParameter, texts: []string{`"n"`, "count is given twice", "runs has no value"}},
		{target: path + "?count=1;format=hex", kind: service.BadParameter, texts: []string{"1;format=hex"}},
		{target: path + "?format=octal", kind: service.BadParameter, texts: []string{`"octal"`, "base62", "raw"}},
		{target: path + "?format=uuid", kind: service.BadParameter, texts: []string{"128-bit"}},
		{target: path + "?format=%zz", kind: service.BadParameter, texts: []string{"format", "URL-encoded"}},
		{target: path + "?%zz=1", kind: service.BadParameter, texts: []string{"URL-encoded"}},
		{target: path + "?runs=1", kind: service.BadParameter, texts: []string{`"1"`, "true or false"}},
		{target: path + "?runs=true&format=raw", kind: service.BadParameter, texts: []string{"format=raw"}},
		{target: path + "?count=0&runs=1&format=HEX&foo=1", kind: service.BadParameter, texts: []string{`count is "0"`, `runs is "1"`, `"HEX"`, `unknown parameter "foo"`}},
		{target: path + "?count=100001&runs=1", kind: service.BadParameter, texts: []string{`count is "100001"`, `runs is "1"`}},
		{target: path + "?count=0&runs=true&format=raw", kind: service.BadParameter, texts: []string{`count is "0"`, "format=raw"}},
		{target: path + "?runs=true", kind: service.NoRuns, texts: []string{"ulid", "random"}, layout: "ulid"},
		{target: path + "?runs=true", kind: service.NoRuns, texts: []string{"2^64"}, layout: "bits=time:48.seq:16.node:64"},
		{target: path, headers: []string{"Accept: image/png"}, kind: service.NotAcceptable, texts: []string{"image/png", "application/json, text/plain and application/octet-stream"}},
		{target: path, headers: []string{"Accept: application/json;q=0"}, kind: service.NotAcceptable},
		{target: path + "?runs=true", headers: []string{"Accept: text/plain"}, kind: service.NotAcceptable, texts: []string{"IDs are available as application/json"}},
		{target: path + "?format=raw", headers: []string{"Accept: application/json"}, kind: service.NotAcceptable, texts: []string{"IDs are available as application/octet-stream"}},
		{target: path + "?format=hex", headers: []string{"Accept: application/octet-stream"}, kind: service.NotAcceptable, texts: []string{"IDs are available as application/json and text/plain"}},
		// Wget and download managers request the rest of an answer that was cut
		// off. The answer is not 416, which Wget takes for one that it has
		// completely.
		{target: path, headers: []string{"Range: bytes=199738-"}, kind: service.UnexpectedRange, texts: []string{"Range is", "without Range"}},
		{target: path, headers: []string{"Range: "}, kind: service.UnexpectedRange},
		{target: path, headers: []string{"Host: evil.example"}, kind: service.ForeignHost, texts: []string{"evil.example", "localhost"}},
		{target: path, headers: []string{"Sec-Fetch-Site: cross-site"}, kind: service.CrossSite},
		{target: path, headers: []string{"Sec-Fetch-Site: same-site"}, kind: service.CrossSite},
		{target: path, headers: []string{"Origin: http://localhost:8080"}, kind: service.CrossSite},
		{target: path, headers: []string{"Origin: null"}, kind: service.CrossSite},
	} {
		layout := row.layout
		if layout == "" {
			layout = "default"
		}
		for _, method := range []string{"GET", "POST"} {
			backend := newStatic(t, layout)
			h := NewHandler(Config{Front: service.Front{Backend: backend}})
			t.Run(method+" "+row.target, func(t *testing.T) {
				for range 2 { // the second time the sequencer is open
					p := wantProblem(t, do(h, method, row.target, row.headers...), row.kind, row.texts...)
					if p.Instance != path {
						t.Errorf("instance = %q, want %q", p.Instance, path)
					}
					if n := stats(t, backend, "orders").IDs; n != 0 {
						t.Errorf("%d IDs were taken, want 0", n)
					}
				}
			})
		}
	}
}

// TestNextBadBody: a request with a body, most likely parameters that belong in
// the URL, is answered in time, also if the body does not arrive.
func TestNextBadBody(t *testing.T) {
	for _, row := range []struct {
		name, rest string
		want       int
		within     time.Duration
		closes     bool // whether the connection ends with the answer
	}{
		{"broken", "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, 0, true},
		{"stalled", "Transfer-Encoding: chunked\r\n\r\n", 400, service.DefaultRead, true},
		{"stalled in the trailer", "Transfer-Encoding: chunked\r\n\r\n0\r\n", 400, service.DefaultRead, true},
		{"stalled after a byte", "Transfer-Encoding: chunked\r\n\r\n1\r\nc\r\n", 400, 0, true},
		{"stalled with a length", "Content-Length: 5\r\n\r\n", 400, 0, true},
		{"parameters", "Content-Length: 7\r\n\r\ncount=3", 400, 0, true},
		{"chunked parameters", "Transfer-Encoding: chunked\r\n\r\n7\r\ncount=3\r\n0\r\n\r\n", 400, 0, true},
		{"chunked and empty", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, time.Second, false},
	} {
		for _, target := range []string{"/v1/sequencers/orders/next", "/healthz"} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(day))
				backend := newStatic(t, "default")
				server := NewServer(NewHandler(Config{Front: service.Front{Backend: backend}}))
				listener := nettest.NewPipes()
				served := make(chan error)
				go func() { served <- server.Serve(listener) }()

				want, closes := row.want, row.closes
				if target == "/healthz" {
					want, closes = 405, true // only next reads a body
				}
				conn := listener.Dial()
				begin := time.Now()
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s", target, row.rest)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("%s, %s: %v", target, row.name, err)
				}
				text, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != want || resp.Close != closes {
					t.Errorf("%s, %s: status %d, close %v, want %d, %v: %s", target, row.name, resp.StatusCode, resp.Close, want, closes, text)
				}
				if n := stats(t, backend, "orders").IDs; want == 400 && (n > 0 || !strings.Contains(string(text), "/v1/sequencers/orders/next?count=3")) {
					t.Errorf("%s, %s: %d IDs were taken, and %s must say where parameters go", target, row.name, n, text)
				}
				if took := time.Since(begin); took > row.within {
					t.Errorf("%s, %s: the answer took %v, want at most %v", target, row.name, took, row.within)
				}
				if !closes {
					// The connection continues as if nothing had happened.
					time.Sleep(service.DefaultRead + time.Second)
					fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target)
					if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 200 {
						t.Errorf("%s, %s: the second answer is %v, %v", target, row.name, resp, err)
					}
				}
				conn.Close()
				server.Close()
				<-served
			})
		}
	}
}

// TestOptionsAll: OPTIONS * passes the Host check like any request.
func TestOptionsAll(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config = NewServer(NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}}))
	server.Start()
	defer server.Close()
	for host, want := range map[string]int{"rebound.example": 421, "localhost": 404} {
		conn := nettest.Dial(t, server.Listener.Addr().String())
		fmt.Fprintf(conn, "OPTIONS * HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		resp := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		if resp.StatusCode != want {
			t.Errorf("OPTIONS * for %s: status %d, want %d", host, resp.StatusCode, want)
		}
		conn.Close()
	}
}

// TestNonce: a nonce shows a client whether an answer is its own.
func TestNonce(t *testing.T) {
	h := NewHandler(Config{Front: service.Front{Backend: newStatic(t, "default")}})
	for sent, want := range map[string]string{
		"Firn-Nonce: 6f1d8c2ab34e97505be0c1f7a2d94483": "6f1d8c2ab34e97505be0c1f7a2d94483",
		"Firn-Nonce: ":                                   "",
		"Firn-Nonce: two words":                          "",
		"Firn-Nonce: " + strings.Repeat("x", 129):        "",
		"X-Request-Id: 6f1d8c2ab34e97505be0c1f7a2d94483": "",
	} {
		for _, query := range []string{"", "?count=0"} {
			w := do(h, "POST", "/v1/sequencers/orders/next"+query, sent)
			if got := w.Header().Get("Firn-Nonce"); got != want {
				t.Errorf("%s%s: Firn-Nonce is %q, want %q", sent, query, got, want)
			}
		}
	}
}

// Typed text has the sequencer's prefix: in JSON, in text, in runs, and as long
// as the Content-Length says. Inspect reads it.
func TestTyped(t *testing.T) {
	backend := servicetest.NewStoreBackend(t, new(memstore.Store), service.StoreBackendConfig{
		Template: func(name string, c *sequencer.Options) error {
			if name == "bills" {
				c.Prefix = "bill"
			}
			return nil
		},
	})
	h := NewHandler(Config{Front: service.Front{Backend: backend, RequestTimeout: 2 * time.Second}})
	for path, body := range map[string]string{"/v1/sequencers/orders": `{"prefix":"order"}`, "/v1/sequencers/long": `{"prefix":"long_one","layout":"uuidv7"}`} {
		if w := nettest.Ask(h, "PUT", path, body); w.Code != 201 || !strings.Contains(w.Body.String(), `"prefix":"`) {
			t.Fatalf("PUT %s: %d %s", path, w.Code, w.Body)
		}
	}
	const id = `order_[0-9a-hjkmnp-tv-z]{13}`
	for _, row := range []struct{ path, want string }{
		{"/v1/sequencers/orders/next?format=typed", `\{"ids":\["` + id + `"\]\}\n`},
		{"/v1/sequencers/orders/next?format=typed&count=1000", `\{"ids":\["` + id + `"(,"` + id + `")*\]\}\n`},
		{"/v1/sequencers/orders/next?format=typed&count=3&runs=true", `\{"runs":\[\{"first":"` + id + `","step":"1","count":3\}\]\}\n`},
		{"/v1/sequencers/long/next?format=typed", `\{"ids":\["long_one_0[0-9a-hjkmnp-tv-z]{25}"\]\}\n`},
		{"/v1/sequencers/bills/next?format=typed", `\{"ids":\["bill_[0-9a-hjkmnp-tv-z]{13}"\]\}\n`},
		{"/v1/inspect/order_03887nf7a8003?layout=default", `\{"layout":"default","time":"2026-11-20T22:00:07.226Z",.*"from":"typed".*\n`},
		{"/v1/inspect/order_03887nf7a8003?from=typed&layout=default", `\{"layout":"default",.*\n`},
	} {
		w := do(h, "GET", row.path)
		if w.Code != 200 || !regexp.MustCompile(`^`+row.want+`$`).MatchString(w.Body.String()) {
			t.Errorf("%s: %d %.300s, want %s", row.path, w.Code, w.Body, row.want)
		}
		if n := w.Header().Get("Content-Length"); n != "" && n != fmt.Sprint(w.Body.Len()) {
			t.Errorf("%s: Content-Length %s of %d bytes", row.path, n, w.Body.Len())
		}
	}
	if w := do(h, "PUT", "/v1/sequencers/plain"); w.Code != 201 {
		t.Fatal(w.Body)
	}
	wantProblem(t, do(h, "GET", "/v1/sequencers/plain/next?format=typed"), service.BadParameter, "the sequencer has no prefix for typed text")
	// A sequencer that would have no prefix is not created.
	wantProblem(t, do(h, "GET", "/v1/sequencers/new/next?format=typed"), service.BadParameter, "no prefix for typed text, and was not created: create it with firn sequencer create --prefix")
	wantProblem(t, do(h, "GET", "/v1/sequencers/new"), service.NoSequencer, "")
	wantProblem(t, do(h, "GET", "/v1/inspect/user_03887nf7a8003?sequencer=orders"), service.BadID, `its prefix is "user", not "order"`)
	wantProblem(t, do(h, "GET", "/v1/inspect/order_o3887nf7a8003"), service.BadID, "it may mean '0'")
}

// Veiled IDs are those of package veil, and inspect unveils them with the
// server's key.
func TestVeiled(t *testing.T) {
	keys := must.Get(veil.ParseKeys("7:" + strings.Repeat("00", 32)))(t)
	backend := servicetest.NewStoreBackend(t, new(memstore.Store), service.StoreBackendConfig{VeilKeys: keys})
	h := NewHandler(Config{Front: service.Front{Backend: backend, VeilKeys: keys, RequestTimeout: 2 * time.Second}})
	for name, layout := range map[string]string{"orders": "default", "long": "uuidv7", "ulids": "ulid"} {
		if w := nettest.Ask(h, "PUT", "/v1/sequencers/"+name, `{"layout":"`+layout+`"}`); w.Code != 201 {
			t.Fatal(w.Body)
		}
	}
	for _, name := range []string{"orders", "long"} {
		w := do(h, "GET", "/v1/sequencers/"+name+"/next?format=veiled&count=300")
		var got struct{ IDs []string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.IDs) != 300 {
			t.Fatalf("%s: %d %s", name, w.Code, w.Body)
		}
		for _, id := range got.IDs[:3] {
			if !strings.HasPrefix(id, "v7_") {
				t.Errorf("%s: %s does not name key 7", name, id)
			}
			w := do(h, "GET", "/v1/inspect/"+id+"?sequencer="+name)
			var read struct {
				Layout, From string
				Time         time.Time
			}
			if err := json.Unmarshal(w.Body.Bytes(), &read); err != nil || read.From != "veiled" || time.Since(read.Time).Abs() > time.Hour {
				t.Errorf("%s: %s is read as %s", name, id, w.Body)
			}
		}
	}
	plain := handlerOn(t, new(memstore.Store), service.Front{RequestTimeout: 2 * time.Second})
	wantProblem(t, do(plain, "GET", "/v1/sequencers/orders/next?format=veiled"), service.BadParameter, "start it with --veil-keys")
	wantProblem(t, do(h, "GET", "/v1/sequencers/ulids/next?format=veiled"), service.BadParameter, "must have 64 bits, or be uuidv7")
	wantProblem(t, do(h, "GET", "/v1/sequencers/orders/next?format=veiled&runs=true"), service.BadParameter, "format=veiled")
	wantProblem(t, do(h, "GET", "/v1/inspect/v7_0000000000001"), service.BadParameter, `"v7_0000000000001" is a veiled ID: name its sequencer`)
	wantProblem(t, do(h, "GET", "/v1/inspect/v7_0000000000001?layout=default&sequencer=orders"), service.BadParameter, "not both")
	wantProblem(t, do(plain, "GET", "/v1/inspect/v7_0000000000001?sequencer=orders"), service.BadParameter, "start it with --veil-keys")
	wantProblem(t, do(h, "GET", "/v1/inspect/117383499776000003?sequencer=orders&from=veiled"), service.BadID, "it is a plain ID")
	wantProblem(t, do(h, "GET", "/v1/inspect/v6_0000000000001?sequencer=orders"), service.BadID, "key 6, and this key is not known")
	wantProblem(t, do(h, "GET", "/v1/inspect/v7_0000000000001?sequencer=none"), service.NoSequencer, "sequencer none not found")
	wantProblem(t, do(h, "GET", "/v1/inspect/v7_0000000000001?sequencer=a/b"), service.BadName, "a/b")
}
