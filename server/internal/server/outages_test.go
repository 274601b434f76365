package server

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/operate/doctor"
	"github.com/firnid/firn/server/internal/service"
)

// An outageWorld is a server with a store, and a sequencer orders.
type outageWorld struct {
	t       *testing.T
	server  *Server
	address string
	now     atomic.Pointer[memstore.Store] // what the store has; it can go back to a copy
	mem     *faultstore.Store              // passes all on to now
	store   *faultstore.Store
	offset  atomic.Int64 // of the server's clock
}

// An outage is how a row of the table in docs/runbooks.md comes about. before
// comes before orders is used, which is skipped if that fails; then comes begin.
type outage struct {
	before, begin func(*outageWorld)
	others        bool // another sequencer can be served meanwhile
}

// newOutageWorld starts a server with the node ID 3.
func newOutageWorld(t *testing.T) *outageWorld {
	t.Helper()
	w := &outageWorld{t: t}
	w.now.Store(new(memstore.Store))
	w.mem = &faultstore.Store{Store: w.now.Load(), Fault: func(_ context.Context, r faultstore.Request) error {
		return r.DoIn(w.now.Load())
	}}
	w.store = &faultstore.Store{Store: w.mem}
	w.server, w.address = served(t, Config{Store: w.timed(), RequestTimeout: 2 * time.Second, Sequencers: w.options(3)})
	return w
}

// timed returns the store with its clock.
func (w *outageWorld) timed() grant.Store { return faultstore.Timed{Store: w.store, Now: time.Now} }

// options returns those of a process with a node ID.
func (w *outageWorld) options(node uint64) sequencer.Options {
	ahead := 100 * time.Millisecond
	return sequencer.Options{
		Layout:   firn.Default(),
		MaxAhead: &ahead,
		Window:   600 * time.Millisecond,
		Nodes:    &grant.NodeRange{Lo: node, Hi: node},
		Now:      func() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) },
	}
}

// create creates orders.
func (w *outageWorld) create(layout string, o *grant.CreateOptions) {
	w.t.Helper()
	must.Get(grant.Create(w.t.Context(), w.mem, "orders", grant.DefaultConfig(nil, firn.MustParseLayout(layout), nil), o))(w.t)
}

// get returns the status and the body of a path.
func (w *outageWorld) get(method, path string) (int, string) {
	w.t.Helper()
	r, _ := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.address+path, nil)
	resp := must.Get(http.DefaultClient.Do(r))(w.t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(w.t)
	return resp.StatusCode, html.UnescapeString(string(body))
}

// await waits until ok.
func (w *outageWorld) await(what string, ok func() (bool, string)) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		done, got := ok()
		if done {
			return
		}
		if time.Since(begin) > patience {
			w.t.Fatalf("%s: the last answer was %s", what, got)
		}
	}
}

// ready waits until /readyz has a status, and wants firn_ready to agree.
func (w *outageWorld) ready(what string, status int) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s: want status %d of /readyz", what, status), func() (bool, string) {
		code, body := w.get("GET", "/readyz")
		_, text := w.get("GET", "/metrics")
		return code == status && strings.Contains(text, fmt.Sprintf("\nfirn_ready %d\n", map[bool]int{true: 1}[status == 200])), fmt.Sprint(code, " ", body)
	})
}

// patience is how long a state may take: it ends only a test that fails.
const patience = time.Minute

var outages = map[string]outage{
	"store-unavailable":            {begin: func(w *outageWorld) { w.store.Cut.Store(true) }},
	"store-unavailable for writes": {begin: func(w *outageWorld) { w.store.Reads.Store(true) }},
	"store-rolled-back": {others: true, begin: func(w *outageWorld) {
		before := faultstore.Copy(w.t, w.mem)
		w.await("the window is renewed", func() (bool, string) {
			w.get("POST", "/v1/sequencers/orders/next")
			_, text := w.get("GET", "/metrics")
			return regexp.MustCompile(`firn_renewals_total\{sequencer="orders"\} [2-9]`).MatchString(text), text
		})
		w.now.Store(before)
	}},
	"clock":       {begin: func(w *outageWorld) { w.offset.Store(int64(-time.Hour)) }},
	"clock-ahead": {before: func(w *outageWorld) { w.offset.Store(int64(time.Hour)) }},
	"nodes-exhausted": {others: true, before: func(w *outageWorld) {
		w.create("default", nil)
		now := time.Now().UnixMilli()
		faultstore.Put(w.t, w.mem, "v1/orders/n/0003", fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%d,"state":"held","host":"h"}`, now+60_000, now))
	}},
	"not-yet": {others: true, before: func(w *outageWorld) {
		w.create("default", &grant.CreateOptions{Floor: time.Now().Add(time.Hour)})
	}},
	"time-over": {others: true, before: func(w *outageWorld) {
		w.create("default,epoch=1950-01-01T00:00:00Z", &grant.CreateOptions{Now: func() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }})
	}},
	"bad-record": {others: true, before: func(w *outageWorld) { faultstore.Put(w.t, w.mem, "v1/orders/config", "{") }},
	"detached": {others: true, begin: func(w *outageWorld) {
		must.Get(grant.Detach(w.t.Context(), w.mem, "orders", nil))(w.t)
	}},
	"moved": {others: true, begin: func(w *outageWorld) {
		there := grant.Place{Store: new(memstore.Store), URL: "dir:/there"}
		must.Get(grant.Move(w.t.Context(), grant.Place{Store: w.mem, URL: "dir:/here"}, there, "orders", nil))(w.t)
	}},
	"destroyed": {others: true, begin: func(w *outageWorld) {
		must.Get(grant.Destroy(w.t.Context(), w.mem, "orders", nil))(w.t)
	}},
	"draining": {others: true, begin: func(w *outageWorld) { w.server.Drain() }},
}

// alertSigns has what metrics show while the expression of an alert is true.
var alertSigns = map[string]string{
	"FirnOutage":           "\nfirn_ready 0\n",
	"FirnStoreUnreachable": "\nfirn_store_up 0\n",
	"FirnSequencerDown":    "\nfirn_sequencer_ready{problem=\"%s\",sequencer=\"orders\"} 0\n",
	"FirnAlarm":            "\nfirn_alarms_total{kind=\"store-went-back\",sequencer=\"orders\"} 1\n",
}

// TestOutagesAsDocumented walks the table in docs/runbooks.md with real outages.
func TestOutagesAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/runbooks.md")
	if err != nil {
		t.Skip("the module stands alone, without the repository's docs")
	}
	_, table, _ := strings.Cut(string(page), "\n## What shows a problem\n")
	table, _, _ = strings.Cut(table, "\n## ")
	seen := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([^|]*) \\| ([^|]*) \\|([^|]*)\\|([^|]*)\\|$").FindAllStringSubmatch(table, -1) {
		problem := m[1]
		seen[problem] = true
		for name, o := range outages {
			if p, _, _ := strings.Cut(name, " "); p == problem {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					words := func(cell string) string { return strings.Trim(cell, " `") }
					testOutage(t, o, problem, m[2], strings.Split(m[3], ", "), words(m[4]), words(m[5]))
				})
			}
		}
	}
	for k := range service.NumKinds {
		if err := outages[k.String()]; !seen[k.String()] && (err.begin != nil || err.before != nil) {
			t.Errorf("the table lacks %s", k)
		}
	}
	for name := range outages {
		if p, _, _ := strings.Cut(name, " "); !seen[p] {
			t.Errorf("the table lacks %s", p)
		}
	}
	_, remedies, _ := strings.Cut(string(page), "\n## What to do about each problem\n")
	remedies, _, _ = strings.Cut(remedies, "\n## ")
	for p := range seen {
		if !strings.Contains(remedies, "\n| `"+p+"` | ") {
			t.Errorf("docs/runbooks.md does not say what to do about %s", p)
		}
		if o := outages[p]; o.before == nil && o.begin == nil {
			t.Errorf("this test does not know how %s comes about", p)
		}
	}
}

func testOutage(t *testing.T, o outage, problem, readiness string, alerts []string, finding, trouble string) {
	w := newOutageWorld(t)
	next := func(name string) (int, string) { return w.get("POST", "/v1/sequencers/"+name+"/next") }
	if o.before != nil {
		o.before(w)
	} else if code, body := next("orders"); code != 200 {
		t.Fatal(body)
	}
	if o.begin != nil {
		o.begin(w)
	}
	if problem != "draining" { // which answers requests
		w.await("requests fail for this reason", func() (bool, string) {
			_, body := next("orders")
			return strings.Contains(body, "urn:firn:problem:"+problem+`"`), body
		})
	}
	isReady := map[bool]int{true: 200, false: 503}
	w.ready("alone", isReady[readiness == "ready"])
	_, text := w.get("GET", "/metrics")
	for name, sign := range alertSigns {
		if strings.Contains(sign, "%s") {
			sign = fmt.Sprintf(sign, problem)
		}
		if want := slices.Contains(alerts, name); strings.Contains(text, sign) != want {
			t.Errorf("%s fires: %t, want %t:\n%s", name, !want, want, regexp.MustCompile(`(?m)^firn_(ready|store_up|sequencer_ready|alarms).*$`).FindAllString(text, -1))
		}
	}
	found := doctor.Run(t.Context(), doctor.Config{Store: w.timed(), Listen: []string{w.address}, Now: func() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }})
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return strings.Contains(f.Text, finding) && (f.Level == doctor.Fix || readiness == "ready")
	}) {
		t.Errorf("doctor finds no %q: %+v", finding, found)
	}
	if _, page := w.get("GET", "/sequencers/orders"); !strings.Contains(page, trouble) {
		t.Errorf("the console does not show %q", trouble)
	}
	if !o.others {
		return
	}
	// An open window keeps the server ready, and then, another sequencer that
	// could be served.
	w.await("with a window", func() (bool, string) {
		code, body := next("others")
		status, why := w.get("GET", "/readyz")
		return code == 200 && (status == 200) == (problem != "draining"), fmt.Sprint(code, body, status, why)
	})
	w.await("the window ends", func() (bool, string) {
		_, text := w.get("GET", "/metrics")
		return strings.Contains(text, "\nfirn_attached{sequencer=\"others\"} 0\n"), "open"
	})
	w.ready("with another that is idle", isReady[!strings.HasPrefix(readiness, "unready") || strings.Contains(readiness, "unless")])
}
