package metrics

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

var update = flag.Bool("update", false, "rewrite the table in docs/metrics.md")

func scrape(t *testing.T, s *Set) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestScrape(t *testing.T) {
	all := []Sequencer{
		{Name: "orders", Stats: firn.Stats{IDs: 12, Batches: 3, Waits: 2, TotalWait: 1500 * time.Millisecond, Lead: 250 * time.Millisecond}, Stored: true, Attached: true, Node: 7, WindowLeft: 42 * time.Second,
			KeeperStats: grant.KeeperStats{Requests: 9, Failed: 1, Unknown: 4, Refused: 5, Applied: 14, Acquired: 6, Renewed: 8, Released: 10, Lost: 11, Expired: 15, Alarms: grant.AlarmCounts{grant.AlarmCloned: 13, grant.AlarmClockStep: 16}},
			Counted:     true, Nodes: Nodes{31, 0, 993}, Ends: time.Unix(1_900_000_000, 0)},
		{Name: "users", Stats: firn.Stats{IDs: 1}, Stored: true, Problem: "detached"},
		{Name: "static", Stats: firn.Stats{IDs: 2}},
	}
	s := New(Config{Version: "v9", Protocols: []string{"http", "resp"}, Sequencers: func() []Sequencer { return append([]Sequencer(nil), all...) }, Connections: func(p string) int64 { return int64(len(p)) },
		Forwards:  func() map[string]uint64 { return map[string]uint64{"ok": 21, "failed": 22, "refused": 0} },
		LostLines: func() uint64 { return 23 },
		StoreUp:   func() (bool, bool) { return true, true },
		Clients:   func(yield func(string, uint64, uint64) bool) { yield("billing", 31, 32) },
		Ready:     func() bool { return true }, Expiry: func() time.Time { return time.Unix(1_800_000_000, 0) },
	})
	s.Observe("http", OK, 30*time.Microsecond, 1)
	s.Observe("http", Refused, time.Millisecond, 1)
	s.Observe("resp", OK, 70*time.Microsecond, 5)
	s.Observe("resp", Failed, time.Minute, 2)
	s.Observe("nothing", OK, time.Millisecond, 1) // is not there, and does no harm
	text := scrape(t, s)
	for _, want := range []string{
		`firn_ids_total{sequencer="orders"} 12`, `firn_wait_seconds_total{sequencer="orders"} 1.5`, `firn_lead_seconds{sequencer="orders"} 0.25`,
		`firn_attached{sequencer="orders"} 1`, `firn_attached{sequencer="users"} 0`, `firn_node{sequencer="orders"} 7`, `firn_window_left_seconds{sequencer="orders"} 42`,
		`firn_store_requests_total{sequencer="orders"} 9`, `firn_store_failures_total{sequencer="orders"} 1`,
		`firn_cas_total{result="unknown",sequencer="orders"} 4`, `firn_cas_total{result="refused",sequencer="orders"} 5`,
		`firn_cas_total{result="applied",sequencer="orders"} 14`, `firn_cas_total{result="unknown",sequencer="users"} 0`,
		`firn_sequencer_ready{problem="",sequencer="orders"} 1`, `firn_sequencer_ready{problem="detached",sequencer="users"} 0`, `firn_layout_end_timestamp_seconds{sequencer="orders"} 1.9e+09`, `firn_ready 1`, `firn_nodes{sequencer="orders",state="held"} 31`, `firn_nodes{sequencer="orders",state="blocked"} 0`, `firn_nodes{sequencer="orders",state="free"} 993`, `firn_certificate_expiry_timestamp_seconds 1.8e+09`, `firn_store_up 1`, `firn_forwards_total{result="ok"} 21`, `firn_forwards_total{result="failed"} 22`, `firn_forwards_total{result="refused"} 0`, `firn_nodes_acquired_total{sequencer="orders"} 6`, `firn_renewals_total{sequencer="orders"} 8`,
		`firn_client_ids_total{client="billing"} 31`, `firn_client_limited_total{client="billing"} 32`,
		`firn_nodes_released_total{sequencer="orders"} 10`, `firn_nodes_lost_total{sequencer="orders"} 11`, `firn_windows_expired_total{sequencer="orders"} 15`, `firn_alarms_total{kind="cloned",sequencer="orders"} 13`, `firn_alarms_total{kind="clock-step",sequencer="orders"} 16`, `firn_alarms_total{kind="fenced-span",sequencer="users"} 0`,
		`firn_requests_total{outcome="ok",protocol="http"} 1`, `firn_requests_total{outcome="refused",protocol="http"} 1`, `firn_requests_total{outcome="failed",protocol="resp"} 2`, `firn_requests_total{outcome="ok",protocol="resp"} 5`,
		`firn_request_seconds_bucket{protocol="resp",le="5e-05"} 0`, `firn_request_seconds_bucket{protocol="resp",le="0.0001"} 5`, `firn_request_seconds_bucket{protocol="resp",le="10"} 5`,
		`firn_request_seconds_bucket{protocol="resp",le="+Inf"} 7`, `firn_request_seconds_count{protocol="resp"} 7`, `firn_request_seconds_sum{protocol="resp"} 120.00035`,
		`firn_request_seconds_bucket{protocol="http",le="0.0005"} 1`, `firn_request_seconds_bucket{protocol="http",le="0.001"} 2`,
		`firn_request_seconds_bucket{protocol="http",le="5e-05"} 1`, `firn_request_seconds_count{protocol="http"} 2`,
		`firn_connections{protocol="http"} 4`, `firn_build_info{version="v9"} 1`, "go_goroutines", `firn_ids_total{sequencer="static"} 2`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, not := range []string{`firn_layout_end_timestamp_seconds{sequencer="users"`, `firn_nodes{sequencer="users"`, `firn_node{sequencer="users"}`, `firn_attached{sequencer="static"}`, `firn_cas_total{result="applied",sequencer="static"}`, `firn_cas_total{result="unknown",sequencer="static"}`, `"` + otherLabel + `"`} {
		if strings.Contains(text, not) {
			t.Errorf("there is %s", not)
		}
	}
	for _, m := range All() {
		if !strings.Contains(text, "# TYPE "+m.Name+" "+string(m.Kind)+"\n") {
			t.Errorf("%s is not there, or no %s", m.Name, m.Kind)
		}
	}
	known := make(map[string]bool)
	for _, m := range All() {
		known[m.Name] = true
	}
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (firn_\S+)`).FindAllStringSubmatch(text, -1) {
		if !known[found[1]] {
			t.Errorf("there is %s, which All does not have", found[1])
		}
	}
}

// TestUnknown: what is not known is not shown, rather than as 0.
func TestUnknown(t *testing.T) {
	none := func() []Sequencer { return nil }
	for what, c := range map[string]Config{
		"nothing": {Sequencers: none},
		"not yet": {Sequencers: none, StoreUp: func() (bool, bool) { return false, false }},
	} {
		text := scrape(t, New(c))
		for _, not := range []string{"firn_store_up", "firn_forwards_total", "firn_connections"} {
			if strings.Contains(text, "\n"+not) {
				t.Errorf("%s: there is %s", what, not)
			}
		}
	}
	if text := scrape(t, New(Config{Sequencers: none, StoreUp: func() (bool, bool) { return false, true }})); !strings.Contains(text, "\nfirn_store_up 0\n") {
		t.Error("a store that does not answer is not shown as 0")
	}
}

// TestNames: names are as Prometheus wants them.
func TestNames(t *testing.T) {
	for _, m := range All() {
		if (m.Kind == Counter) != strings.HasSuffix(m.Name, "_total") || !strings.HasPrefix(m.Name, "firn_") || !strings.HasSuffix(m.Help, ".") ||
			strings.Contains(m.Name, "_seconds") != (m.Unit == "seconds") {
			t.Errorf("%+v", m)
		}
	}
}

// TestManySequencers: the busiest have metrics of their own, and no count is
// lost.
func TestManySequencers(t *testing.T) {
	s := New(Config{Sequencers: func() (all []Sequencer) {
		for i := range maxSequencers + 10 {
			all = append(all, Sequencer{Name: fmt.Sprintf("s%d", i), Stats: firn.Stats{IDs: uint64(i), Lead: time.Second}, Stored: true, KeeperStats: grant.KeeperStats{Unknown: 1}})
		}
		return all
	}})
	text := scrape(t, s)
	if n := strings.Count(text, "firn_ids_total{"); n != maxSequencers+1 {
		t.Errorf("%d counters, want %d", n, maxSequencers+1)
	}
	if !strings.Contains(text, `firn_cas_total{result="unknown",sequencer="_other"} 10`) {
		t.Error("the others' compare-and-swaps are not counted together")
	}
	if !strings.Contains(text, `firn_ids_total{sequencer="_other"} 45`) || strings.Contains(text, `firn_lead_seconds{sequencer="_other"}`) {
		t.Errorf("the others are not counted together")
	}
}

// TestOtherDoesNotFall: who was counted among the others stays there when it
// gets busy, and a place that is free goes to one that was not counted yet.
func TestOtherDoesNotFall(t *testing.T) {
	ids := make(map[string]uint64)
	for i := range maxSequencers + 1 {
		ids[fmt.Sprintf("s%d", i)] = uint64(i + 1)
	}
	s := New(Config{Sequencers: func() (all []Sequencer) {
		for name, n := range ids {
			all = append(all, Sequencer{Name: name, Stats: firn.Stats{IDs: n}})
		}
		return all
	}})
	check := func(what string, wanted ...string) {
		t.Helper()
		text := scrape(t, s)
		for _, want := range wanted {
			if !strings.Contains(text, "\nfirn_ids_total{sequencer="+want+"\n") {
				t.Errorf("%s: there is no %s", what, want)
			}
		}
		if n := strings.Count(text, "\nfirn_ids_total{"); n > maxSequencers+1 {
			t.Errorf("%s: %d counters", what, n)
		}
	}
	check("at first", `"_other"} 1`, `"s1"} 2`)
	ids["s0"] = 1 << 20
	check("the least is the busiest", `"_other"} 1.048576e+06`, `"s1"} 2`)
	delete(ids, "s1")
	ids["new"] = 7
	check("one is gone, and one is new", `"_other"} 1.048576e+06`, `"new"} 7`)
	ids["late"] = 1 << 20
	check("another one is new", `"_other"} 2.097152e+06`, `"new"} 7`)
	delete(ids, "s2")
	check("a place is free, and none is new", `"_other"} 2.097152e+06`, `"new"} 7`)
}

func TestObserveDoesNotAllocate(t *testing.T) {
	s := New(Config{Protocols: []string{"http"}, Sequencers: func() []Sequencer { return nil }})
	if n := testing.AllocsPerRun(100, func() { s.Observe("http", OK, time.Millisecond, 1) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	s := New(Config{Protocols: []string{"http", "grpc", "resp"}, Sequencers: func() []Sequencer { return nil }})
	b.ReportAllocs()
	for b.Loop() {
		s.Observe("resp", OK, 30*time.Microsecond, 1)
	}
}

// TestDocs: docs/metrics.md has exactly the metrics.
func TestDocs(t *testing.T) {
	const page = "../../../../docs/metrics.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Skip("the module stands alone, without the repository's docs")
	}
	var b strings.Builder
	b.WriteString("| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n")
	for _, m := range All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Kind, m.Unit, strings.Join(m.Labels, ", "), m.Help)
	}
	table := regexp.MustCompile(`(?s)\| metric \|.*?\n\n`)
	want := table.ReplaceAllLiteralString(string(text), b.String()+"\n")
	if *update {
		must.Do(t, os.WriteFile(page, []byte(want), 0o666))
		return
	}
	if !strings.Contains(string(text), b.String()) {
		t.Errorf("docs/metrics.md is not as the metrics are: go test ./metrics -update")
	}
}

// TestPages: pages, the dashboard and rules name metrics that there are.
func TestPages(t *testing.T) {
	known := map[string]bool{"firn_": true} // as in firn_…
	for _, m := range All() {
		known[m.Name] = true
		if m.Kind == Histogram {
			known[m.Name+"_bucket"], known[m.Name+"_count"], known[m.Name+"_sum"] = true, true, true
		}
	}
	for _, page := range []string{"docs/metrics.md", "docs/grafana/firn.json", "deploy/prometheus/alerts.yaml"} {
		text, err := os.ReadFile("../../../../" + page)
		if err != nil {
			t.Skip("the module stands alone, without the repository's pages")
		}
		for _, name := range regexp.MustCompile(`firn_[a-z_]+`).FindAllString(string(text), -1) {
			if !known[name] {
				t.Errorf("%s has %s, which is no metric", page, name)
			}
		}
	}
}

// TestAlarmRule: the critical alert fires for the kinds of alarms after which
// IDs may exist twice, and for no other.
func TestAlarmRule(t *testing.T) {
	var kinds []string
	for a := range (grant.AlarmCounts{}).All() {
		if a.MayRepeat() {
			kinds = append(kinds, a.String())
		}
	}
	for _, page := range []string{"../../../../deploy/prometheus/alerts.yaml", "../../../../deploy/helm/firn/alerts.yaml"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Skip("the module stands alone, without the repository's rules")
		}
		rules := regexp.MustCompile(`firn_alarms_total\{kind=~"([^"]*)"\}`).FindAllStringSubmatch(string(text), -1)
		if len(rules) != strings.Count(string(text), "firn_alarms_total") {
			t.Errorf("%s has a rule for alarms of every kind", page)
		}
		for _, r := range rules {
			got := strings.Split(r[1], "|")
			slices.Sort(got)
			slices.Sort(kinds)
			if !slices.Equal(got, kinds) {
				t.Errorf("%s: the alert is about %s, want %s", page, got, kinds)
			}
		}
	}
}
