// Package metrics exposes the activity of a server to Prometheus.
// docs/metrics.md describes each metric.
package metrics

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// A Sequencer has the statistics of one sequencer since this server opened it.
// Its counters never decrease.
type Sequencer struct {
	Name string
	firn.Stats

	Stored     bool // its node ID is in a store; then the fields below are set
	Attached   bool // it holds a node ID
	Node       uint64
	WindowLeft time.Duration // negative if the window has ended
	grant.KeeperStats
	Counted bool // Nodes is known
	Nodes   Nodes
	Err     error // why it has no node ID, or cannot renew its window; nil if all is well
}

// Nodes are the node IDs of a sequencer in the store by state.
type Nodes struct{ Held, Blocked, Free uint64 }

// AlarmCounts are numbers of alarms by kind; see grant.AlarmName.
type AlarmCounts = [len(grant.KeeperStats{}.Alarms)]uint64

// MaxSequencers is how many sequencers have metrics of their own: the first
// ones, and of those that appear at once the ones with the most IDs. The others
// are summed as Other for as long as they exist: if they changed places, the
// counters of Other would fall.
const MaxSequencers = 500

// Other is the label of the sum of sequencers. No sequencer can have that name.
const Other = "_other"

// A Kind is a type of metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// value returns what Prometheus calls a Counter or a Gauge.
func (k Kind) value() prometheus.ValueType {
	if k == Counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// A Metric describes a metric.
type Metric struct {
	Name   string
	Kind   Kind
	Unit   string // unit of its value; empty for flags and labels
	Labels []string
	Help   string

	value  func(*Sequencer) (float64, bool) // for metrics of a sequencer
	series []series                         // for metrics of a sequencer with a second label
}

func (m *Metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }

// A series is the part of a metric for one value of its second label.
type series struct {
	label string
	value func(*Sequencer) (float64, bool)
}

func count(f func(*Sequencer) uint64) func(*Sequencer) (float64, bool) {
	return func(s *Sequencer) (float64, bool) { return float64(f(s)), true }
}

func stored(f func(*Sequencer) float64) func(*Sequencer) (float64, bool) {
	return func(s *Sequencer) (float64, bool) { return f(s), s.Stored }
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

var (
	ofSequencer = []string{"sequencer"}
	ofProtocol  = []string{"protocol"}
)

// All returns all metrics of Firn, in the order of docs/metrics.md.
func All() []Metric {
	return []Metric{
		{"firn_ids_total", Counter, "IDs", ofSequencer, "IDs made.", count(func(s *Sequencer) uint64 { return s.IDs }), nil},
		{"firn_batches_total", Counter, "batches", ofSequencer, "Batches made. A single ID may count as a batch.", count(func(s *Sequencer) uint64 { return s.Batches }), nil},
		{"firn_waits_total", Counter, "calls", ofSequencer, "Calls that had to wait for the clock or a node ID.", count(func(s *Sequencer) uint64 { return s.Waits }), nil},
		{"firn_wait_seconds_total", Counter, "seconds", ofSequencer, "Total time that calls have waited.", func(s *Sequencer) (float64, bool) { return s.TotalWait.Seconds(), true }, nil},
		{"firn_lead_seconds", Gauge, "seconds", ofSequencer, "How far the time of the last ID is ahead of the clock; negative while no IDs are made. Near MaxAhead, callers wait.", func(s *Sequencer) (float64, bool) { return s.Lead.Seconds(), true }, nil},
		{"firn_attached", Gauge, "", ofSequencer, "1 if this server holds a node ID of the sequencer, otherwise 0.", stored(func(s *Sequencer) float64 { return one(s.Attached) }), nil},
		{"firn_node", Gauge, "", ofSequencer, "The node ID, if this server holds one.", func(s *Sequencer) (float64, bool) { return float64(s.Node), s.Stored && s.Attached }, nil},
		{"firn_window_left_seconds", Gauge, "seconds", ofSequencer, "Time until the node ID expires without renewal in the store. If it is near 0 while IDs are made, renewals fail.", func(s *Sequencer) (float64, bool) { return s.WindowLeft.Seconds(), s.Stored && s.Attached }, nil},
		{"firn_store_requests_total", Counter, "requests", ofSequencer, "Requests to the store.", stored(func(s *Sequencer) float64 { return float64(s.Requests) }), nil},
		{"firn_store_failures_total", Counter, "requests", ofSequencer, "Requests to the store that failed.", stored(func(s *Sequencer) float64 { return float64(s.Failed) }), nil},
		{"firn_cas_total", Counter, "compare-and-swaps", []string{"sequencer", "result"}, "Compare-and-swaps of node IDs by result: applied, refused (another process was faster) or unknown (no answer).", nil, []series{
			{"applied", stored(func(s *Sequencer) float64 { return float64(s.Applied) })},
			{"refused", stored(func(s *Sequencer) float64 { return float64(s.Refused) })},
			{"unknown", stored(func(s *Sequencer) float64 { return float64(s.Unknown) })},
		}},
		{"firn_nodes_acquired_total", Counter, "node IDs", ofSequencer, "Node IDs acquired.", stored(func(s *Sequencer) float64 { return float64(s.Acquired) }), nil},
		{"firn_renewals_total", Counter, "windows", ofSequencer, "Windows renewed.", stored(func(s *Sequencer) float64 { return float64(s.Renewed) }), nil},
		{"firn_nodes_released_total", Counter, "node IDs", ofSequencer, "Node IDs given back.", stored(func(s *Sequencer) float64 { return float64(s.Released) }), nil},
		{"firn_nodes_lost_total", Counter, "node IDs", ofSequencer, "Node IDs that another process has taken over, after a pause longer than the window.", stored(func(s *Sequencer) float64 { return float64(s.Lost) }), nil},
		{"firn_windows_expired_total", Counter, "windows", ofSequencer, "Windows that ended because renewal failed, so that no more IDs are made. Unused windows, which end on purpose, do not count.", stored(func(s *Sequencer) float64 { return float64(s.Expired) }), nil},
		{"firn_alarms_total", Counter, "alarms", []string{"sequencer", "kind"}, "Alarms by kind. After cloned, store-went-back, windows-overlapped and fenced-span, IDs may exist twice: see the log.", nil, ofAlarms()},
		{"firn_nodes", Gauge, "node IDs", []string{"sequencer", "state"}, "Node IDs in the store by state: held, blocked (by a fence, or by a clock far ahead) or free. Counted once a minute.", nil, []series{
			{"held", func(s *Sequencer) (float64, bool) { return float64(s.Nodes.Held), s.Counted }},
			{"blocked", func(s *Sequencer) (float64, bool) { return float64(s.Nodes.Blocked), s.Counted }},
			{"free", func(s *Sequencer) (float64, bool) { return float64(s.Nodes.Free), s.Counted }},
		}},
		{"firn_ready", Gauge, "", nil, "1 if the server can give IDs, as /readyz reports, also while it is idle; otherwise 0.", nil, nil},
		{"firn_certificate_expiry_timestamp_seconds", Gauge, "seconds", nil, "When the server's certificate expires, since 1970. Absent without TLS.", nil, nil},
		{"firn_store_up", Gauge, "", nil, "1 if the last read from the store and the last write to it succeeded, otherwise 0. Absent with a static node ID.", nil, nil},
		{"firn_forwards_total", Counter, "calls", []string{"result"}, "Calls to another server for IDs because this one had no node ID, by result.", nil, nil},
		{"firn_requests_total", Counter, "requests", []string{"protocol", "outcome"}, "Requests by outcome: ok, refused (the client's fault), failed (the server's fault) or cancelled (the client left before the answer).", nil, nil},
		{"firn_request_seconds", Histogram, "seconds", ofProtocol, "Duration of requests.", nil, nil},
		{"firn_connections", Gauge, "connections", ofProtocol, "Open connections.", nil, nil},
		{"firn_build_info", Gauge, "", []string{"version"}, "Always 1.", nil, nil},
	}
}

// ofAlarms returns a series for each kind of alarm.
func ofAlarms() (all []series) {
	for kind := range len(AlarmCounts{}) {
		if kind > 0 {
			all = append(all, series{grant.AlarmName(kind), stored(func(s *Sequencer) float64 { return float64(s.Alarms[kind]) })})
		}
	}
	return all
}

// An Outcome is how a request ended.
type Outcome int

// The outcomes.
const (
	OK Outcome = iota
	Refused
	Failed
	Cancelled
	outcomes
)

var outcomeNames = [outcomes]string{"ok", "refused", "failed", "cancelled"}

// A Set is the metrics of one server. It must be made by New, and is safe for
// concurrent use.
type Set struct {
	registry *prometheus.Registry
	requests map[string]*[outcomes]prometheus.Counter // by protocol; immutable after New
	seconds  map[string]*histogram
}

// Config says what a Set shows.
type Config struct {
	Version   string
	Protocols []string

	// Sequencers returns the statistics of each sequencer. It is called at every
	// scrape.
	Sequencers func() []Sequencer

	// Forwards returns how often other servers were asked, by result, with all
	// possible results; nil if none is asked.
	Forwards func() map[string]uint64

	// Connections returns the number of open connections of a protocol; nil if
	// unknown.
	Connections func(protocol string) int64

	// Ready reports whether the server can give IDs; nil if unknown. It is called
	// at every scrape.
	Ready func() bool

	// Expiry returns when the server's certificate expires; nil without TLS.
	Expiry func() time.Time

	// StoreUp reports whether the store answered last; known is false before the
	// first answer. nil means no store.
	StoreUp func() (up, known bool)
}

// New makes a Set.
func New(c Config) *Set {
	s := &Set{registry: prometheus.NewRegistry(), requests: make(map[string]*[outcomes]prometheus.Counter), seconds: make(map[string]*histogram)}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	of := &ofSequencers{c: c}
	show := func(m Metric, values func(send func(v float64, labels ...string))) {
		s.registry.MustRegister(&shown{m, m.desc(), values})
	}
	for _, m := range All() {
		switch {
		case m.value != nil || m.series != nil:
			of.metrics = append(of.metrics, m)
			of.descs = append(of.descs, m.desc())
		case m.Name == "firn_ready" && c.Ready != nil:
			show(m, func(send func(float64, ...string)) { send(one(c.Ready())) })
		case m.Name == "firn_certificate_expiry_timestamp_seconds" && c.Expiry != nil:
			show(m, func(send func(float64, ...string)) { send(float64(c.Expiry().Unix())) })
		case m.Name == "firn_store_up" && c.StoreUp != nil:
			show(m, func(send func(float64, ...string)) {
				if up, known := c.StoreUp(); known {
					send(one(up))
				}
			})
		case m.Name == "firn_requests_total":
			v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
			for _, p := range c.Protocols {
				s.requests[p] = new([outcomes]prometheus.Counter)
				for o := range outcomes {
					s.requests[p][o] = v.WithLabelValues(p, outcomeNames[o])
				}
			}
			s.registry.MustRegister(v)
		case m.Name == "firn_request_seconds":
			for _, p := range c.Protocols {
				s.seconds[p] = new(histogram)
			}
			s.registry.MustRegister(histograms{m.desc(), s.seconds})
		case m.Name == "firn_forwards_total" && c.Forwards != nil:
			show(m, func(send func(float64, ...string)) {
				for result, n := range c.Forwards() {
					send(float64(n), result)
				}
			})
		case m.Name == "firn_connections" && c.Connections != nil:
			show(m, func(send func(float64, ...string)) {
				for _, p := range c.Protocols {
					send(float64(c.Connections(p)), p)
				}
			})
		case m.Name == "firn_build_info":
			show(m, func(send func(float64, ...string)) { send(1, c.Version) })
		}
	}
	s.registry.MustRegister(of)
	return s
}

// Observe counts a request without allocating. The protocol must be one of
// Config.
func (s *Set) Observe(protocol string, o Outcome, d time.Duration) { s.ObserveMany(protocol, o, d, 1) }

// ObserveMany counts n requests of duration d each.
func (s *Set) ObserveMany(protocol string, o Outcome, d time.Duration, n int) {
	if r := s.requests[protocol]; r != nil && n > 0 {
		r[o].Add(float64(n))
		s.seconds[protocol].observe(d, uint64(n))
	}
}

// Handler answers scrapes.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
}

// A shown collects the values that a metric of the server has at a scrape.
type shown struct {
	metric Metric
	desc   *prometheus.Desc
	values func(send func(v float64, labels ...string))
}

func (m *shown) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc }

func (m *shown) Collect(ch chan<- prometheus.Metric) {
	m.values(func(v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(m.desc, m.metric.Kind.value(), v, labels...)
	})
}

// ofSequencers collects the metrics of sequencers at each scrape.
type ofSequencers struct {
	c       Config
	metrics []Metric
	descs   []*prometheus.Desc

	mu  sync.Mutex      // guards own
	own map[string]bool // by name: true for sequencers with metrics of their own, false for those in Other
}

func (o *ofSequencers) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range o.descs {
		ch <- d
	}
}

func (o *ofSequencers) Collect(ch chan<- prometheus.Metric) {
	all, own := o.sequencers()
	for i, m := range o.metrics {
		if m.value != nil {
			collect(ch, o.descs[i], m.Kind, m.value, all, own)
		}
		for _, one := range m.series {
			collect(ch, o.descs[i], m.Kind, one.value, all, own, one.label)
		}
	}
}

// sequencers returns all sequencers; the first own ones have metrics of their
// own.
func (o *ofSequencers) sequencers() (all []Sequencer, own int) {
	all = o.c.Sequencers()
	o.mu.Lock()
	defer o.mu.Unlock()
	// Known ones come first, then the busiest.
	rank := func(s *Sequencer) int {
		switch own, known := o.own[s.Name]; {
		case own:
			return 0
		case known:
			return 2
		}
		return 1
	}
	slices.SortFunc(all, func(a, b Sequencer) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.IDs, a.IDs), cmp.Compare(a.Name, b.Name))
	})
	next := make(map[string]bool, len(all))
	for n := range all {
		if n < MaxSequencers && rank(&all[n]) < 2 {
			own = n + 1
		}
		next[all[n].Name] = n < own
	}
	o.own = next
	return all, own
}

// collect sends one value for each of the first own sequencers, and the sum of
// the others if it is a counter. more are the labels after the sequencer.
func collect(ch chan<- prometheus.Metric, d *prometheus.Desc, k Kind, value func(*Sequencer) (float64, bool), all []Sequencer, own int, more ...string) {
	kind := k.value()
	others, some := 0.0, false
	for n := range all {
		v, ok := value(&all[n])
		switch {
		case !ok:
		case n < own:
			ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{all[n].Name}, more...)...)
		case k == Counter:
			others, some = others+v, true
		}
	}
	if some {
		ch <- prometheus.MustNewConstMetric(d, kind, others, append([]string{Other}, more...)...)
	}
}
