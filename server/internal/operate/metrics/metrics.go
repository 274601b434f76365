// Package metrics exposes the activity of a server to Prometheus.
// docs/metrics.md describes each metric.
package metrics

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

	Problem string    // the kind of problem for which it is not served; empty if it is
	Ends    time.Time // when the time of its layout ends; zero if unknown
}

// Nodes are the node IDs of a sequencer in the store by state.
type Nodes struct{ Held, Blocked, Free uint64 }

// maxSequencers is how many sequencers have metrics of their own: the first
// ones, and of those that appear at once the ones with the most IDs. The others
// are summed as otherLabel for as long as they exist: if they changed places,
// the counters of otherLabel would fall.
const maxSequencers = 500

// clients calls f for clients; each has a label, so their number is bounded
// like that of sequencers.
func (s *Set) clients(f func(name string, ids, limited uint64)) {
	if s.config.Clients == nil {
		return
	}
	n := 0
	s.config.Clients(func(name string, ids, limited uint64) bool {
		f(name, ids, limited)
		n++
		return n < maxSequencers
	})
}

// otherLabel is the label of the sum of sequencers. No sequencer can have that
// name.
const otherLabel = "_other"

// A Kind is a type of metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// A put adds a value to a scrape, with the metric's labels.
type put func(v float64, labels ...string)

// A Metric describes a metric.
type Metric struct {
	Name   string
	Kind   Kind
	Unit   string // unit of its value; empty for flags and labels
	Labels []string
	Help   string

	// One of these adds its values; neither does for a Histogram.
	ofSequencer func(*Sequencer, put) // the labels that it adds follow the sequencer
	ofServer    func(*Set, put)
}

func count(f func(*Sequencer) uint64) func(*Sequencer, put) {
	return func(s *Sequencer, put put) { put(float64(f(s))) }
}

// stored is count for sequencers whose node ID is in a store.
func stored(f func(*Sequencer) uint64) func(*Sequencer, put) {
	return func(s *Sequencer, put put) {
		if s.Stored {
			put(float64(f(s)))
		}
	}
}

func oneIf(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

var (
	bySequencer = []string{"sequencer"}
	byProtocol  = []string{"protocol"}
)

// All returns all metrics of Firn, in the order of docs/metrics.md.
func All() []Metric { return slices.Clone(all) }

var all = []Metric{
	{"firn_ids_total", Counter, "IDs", bySequencer, "IDs made.", count(func(s *Sequencer) uint64 { return s.IDs }), nil},
	{"firn_batches_total", Counter, "batches", bySequencer,
		"Batches made. A single ID may count as a batch.", count(func(s *Sequencer) uint64 { return s.Batches }), nil},
	{"firn_waits_total", Counter, "calls", bySequencer,
		"Calls that had to wait for the clock or a node ID.", count(func(s *Sequencer) uint64 { return s.Waits }), nil},
	{"firn_wait_seconds_total", Counter, "seconds", bySequencer,
		"Total time that calls have waited.", func(s *Sequencer, put put) { put(s.TotalWait.Seconds()) }, nil},
	{"firn_lead_seconds", Gauge, "seconds", bySequencer,
		"How far the time of the last ID is ahead of the clock; negative while no IDs are made. Near MaxAhead, callers wait.",
		func(s *Sequencer, put put) { put(s.Lead.Seconds()) }, nil},
	{"firn_attached", Gauge, "", bySequencer,
		"1 if this server holds a node ID of the sequencer, otherwise 0.",
		stored(func(s *Sequencer) uint64 { return oneIf(s.Attached) }), nil},
	{"firn_node", Gauge, "", bySequencer, "The node ID, if this server holds one.", func(s *Sequencer, put put) {
		if s.Stored && s.Attached {
			put(float64(s.Node))
		}
	}, nil},
	{"firn_window_left_seconds", Gauge, "seconds", bySequencer,
		"Time until the node ID expires without renewal in the store. If it is near 0 while IDs " +
			"are made, renewals fail.", func(s *Sequencer, put put) {
			if s.Stored && s.Attached {
				put(s.WindowLeft.Seconds())
			}
		}, nil},
	{"firn_store_requests_total", Counter, "requests", bySequencer,
		"Requests to the store.", stored(func(s *Sequencer) uint64 { return s.Requests }), nil},
	{"firn_store_failures_total", Counter, "requests", bySequencer,
		"Requests to the store that failed.", stored(func(s *Sequencer) uint64 { return s.Failed }), nil},
	{"firn_cas_total", Counter, "compare-and-swaps", []string{"sequencer", "result"},
		"Compare-and-swaps of node IDs by result: applied, refused (another process was faster) or unknown " +
			"(no answer).", func(s *Sequencer, put put) {
			if s.Stored {
				put(float64(s.Applied), "applied")
				put(float64(s.Refused), "refused")
				put(float64(s.Unknown), "unknown")
			}
		}, nil},
	{"firn_nodes_acquired_total", Counter, "node IDs", bySequencer,
		"Node IDs acquired.", stored(func(s *Sequencer) uint64 { return s.Acquired }), nil},
	{"firn_renewals_total", Counter, "windows", bySequencer,
		"Windows renewed.", stored(func(s *Sequencer) uint64 { return s.Renewed }), nil},
	{"firn_nodes_released_total", Counter, "node IDs", bySequencer,
		"Node IDs given back.", stored(func(s *Sequencer) uint64 { return s.Released }), nil},
	{"firn_nodes_lost_total", Counter, "node IDs", bySequencer,
		"Node IDs that another process has taken over, because their windows had ended by its clock.",
		stored(func(s *Sequencer) uint64 { return s.Lost }), nil},
	{"firn_windows_expired_total", Counter, "windows", bySequencer,
		"Windows that ended because renewal failed, so that no more IDs are made. Unused windows, which end on " +
			"purpose, do not count, nor what operators end: a fence, for example.",
		stored(func(s *Sequencer) uint64 { return s.Expired }), nil},
	{"firn_alarms_total", Counter, "alarms", []string{"sequencer", "kind"},
		"Alarms by kind. After cloned, store-went-back, windows-overlapped and fenced-span, IDs may " +
			"exist twice: see the log.", func(s *Sequencer, put put) {
			for kind, n := range s.Alarms.All() {
				if s.Stored {
					put(float64(n), kind.String())
				}
			}
		}, nil},
	{"firn_nodes", Gauge, "node IDs", []string{"sequencer", "state"},
		"Node IDs in the store by state: held, blocked (by a fence or a clock far ahead, or with a damaged " +
			"record) or free. Counted once a minute.", func(s *Sequencer, put put) {
			if s.Counted {
				put(float64(s.Nodes.Held), "held")
				put(float64(s.Nodes.Blocked), "blocked")
				put(float64(s.Nodes.Free), "free")
			}
		}, nil},
	{"firn_sequencer_ready", Gauge, "", []string{"sequencer", "problem"},
		"1 if this server gives IDs of the sequencer, or would as far as it knows; otherwise 0, " +
			"with the kind of problem.", func(s *Sequencer, put put) {
			put(float64(oneIf(s.Problem == "")), s.Problem)
		}, nil},
	{"firn_layout_end_timestamp_seconds", Gauge, "seconds", bySequencer,
		"When the time of the sequencer's layout ends, since 1970: it has no IDs after that.", func(s *Sequencer, put put) {
			if !s.Ends.IsZero() {
				put(float64(s.Ends.Unix()))
			}
		}, nil},
	{"firn_ready", Gauge, "", nil, "1 if the server can give IDs, as /readyz reports, also while " +
		"it is idle; otherwise 0.", nil, func(s *Set, put put) {
		if s.config.Ready != nil {
			put(float64(oneIf(s.config.Ready())))
		}
	}},
	{"firn_certificate_expiry_timestamp_seconds", Gauge, "seconds", nil,
		"When the server's certificate expires, since 1970. Absent without TLS.", nil, func(s *Set, put put) {
			if s.config.Expiry != nil {
				put(float64(s.config.Expiry().Unix()))
			}
		}},
	{"firn_store_up", Gauge, "", nil,
		"1 if the last read from the store and the last write to it succeeded, otherwise 0. " +
			"Absent with a static node ID.", nil, func(s *Set, put put) {
			if s.config.StoreUp != nil {
				if up, known := s.config.StoreUp(); known {
					put(float64(oneIf(up)))
				}
			}
		}},
	{"firn_forwards_total", Counter, "calls", []string{"result"},
		"Calls to another server for IDs because this one had no node ID, by result.", nil, func(s *Set, put put) {
			if s.config.Forwards != nil {
				for result, n := range s.config.Forwards() {
					put(float64(n), result)
				}
			}
		}},
	{"firn_client_ids_total", Counter, "IDs", []string{"client"},
		"IDs that the clients of an entry of the token file have taken, over all protocols; for the first 500 " +
			"entries.", nil, func(s *Set, put put) {
			s.clients(func(name string, ids, _ uint64) { put(float64(ids), name) })
		}},
	{"firn_client_limited_total", Counter, "requests", []string{"client"},
		"Requests that a limit of their entry of the token file has refused.", nil, func(s *Set, put put) {
			s.clients(func(name string, _, limited uint64) { put(float64(limited), name) })
		}},
	{"firn_issue_log_lost_lines_total", Counter, "lines", nil,
		"Lines of the issue log that could not be written. Absent without --issue-log.", nil, func(s *Set, put put) {
			if s.config.LostLines != nil {
				put(float64(s.config.LostLines()))
			}
		}},
	{"firn_requests_total", Counter, "requests", []string{"protocol", "outcome"},
		"Requests by outcome: ok, refused (the client's fault), failed (the server's fault) or cancelled (the " +
			"client left before the answer).", nil, func(s *Set, put put) {
			for protocol, r := range s.requests {
				for o := range outcomes {
					put(float64(r.counts[o].Load()), protocol, outcomeNames[o])
				}
			}
		}},
	{"firn_request_seconds", Histogram, "seconds", byProtocol, "Duration of requests.", nil, nil},
	{"firn_connections", Gauge, "connections", byProtocol, "Open connections.", nil, func(s *Set, put put) {
		for _, protocol := range s.config.Protocols {
			put(float64(s.config.Connections(protocol)), protocol)
		}
	}},
	{"firn_build_info", Gauge, "", []string{"version"}, "Always 1.", nil, func(s *Set, put put) {
		put(1, s.config.Version)
	}},
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
	config   Config
	registry *prometheus.Registry
	requests map[string]*requests // by protocol; immutable after New

	mu sync.Mutex // guards own

	// own has, by name, true for sequencers with metrics of their own, and
	// false for those in otherLabel.
	own map[string]bool
}

// requests are the requests of one protocol.
type requests struct {
	counts  [outcomes]atomic.Uint64
	seconds histogram
}

// Config says what a Set shows.
type Config struct {
	Version   string
	Protocols []string

	// Sequencers returns the statistics of each sequencer. It is called at
	// every scrape.
	Sequencers func() []Sequencer

	// Forwards returns how often other servers were asked, by result, with all
	// possible results; nil if none is asked.
	Forwards func() map[string]uint64

	// LostLines returns how many lines of the issue log were lost; nil without
	// one.
	LostLines func() uint64

	// Clients yields the name of each client of the token file, the IDs that it
	// has taken, and its requests that its limits have refused; nil without a
	// file.
	Clients func(yield func(name string, ids, limited uint64) bool)

	// Connections returns the number of open connections of a protocol. It is
	// required if there are Protocols.
	Connections func(protocol string) int64

	// Ready reports whether the server can give IDs; nil if unknown. It is
	// called at every scrape.
	Ready func() bool

	// Expiry returns when the server's certificate expires; nil without TLS.
	Expiry func() time.Time

	// StoreUp reports whether the store answered last; known is false before
	// the first answer. nil means no store.
	StoreUp func() (up, known bool)
}

// New makes a Set.
func New(c Config) *Set {
	s := &Set{config: c, registry: prometheus.NewRegistry(), requests: make(map[string]*requests)}
	for _, protocol := range c.Protocols {
		s.requests[protocol] = new(requests)
	}
	s.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collector{s})
	return s
}

// Observe counts n requests of duration d each, without allocating. The
// protocol must be one of Config.
func (s *Set) Observe(protocol string, o Outcome, d time.Duration, n int) {
	if r := s.requests[protocol]; r != nil && n > 0 {
		r.counts[o].Add(uint64(n))
		r.seconds.observe(d, uint64(n))
	}
}

// Handler answers scrapes.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
}

// A collector collects all metrics of a Set at a scrape.
type collector struct{ *Set }

// Describe describes nothing: which metrics there are depends on the
// configuration.
func (s collector) Describe(chan<- *prometheus.Desc) {}

func (s collector) Collect(ch chan<- prometheus.Metric) {
	all, own := s.sequencers()
	for _, m := range All() {
		desc, kind := prometheus.NewDesc(m.Name, m.Help, m.Labels, nil), prometheus.GaugeValue
		if m.Kind == Counter {
			kind = prometheus.CounterValue
		}
		put := func(v float64, labels ...string) { ch <- prometheus.MustNewConstMetric(desc, kind, v, labels...) }
		switch {
		case m.ofSequencer != nil:
			m.putSequencers(all, own, put)
		case m.ofServer != nil:
			m.ofServer(s.Set, put)
		default:
			for protocol, r := range s.requests {
				ch <- r.seconds.metric(desc, protocol)
			}
		}
	}
}

// putSequencers adds the values of each of the first own sequencers, and the
// sums of the others if the metric is a counter.
func (m *Metric) putSequencers(all []Sequencer, own int, put put) {
	for n := range all[:own] {
		m.ofSequencer(&all[n], func(v float64, labels ...string) { put(v, append([]string{all[n].Name}, labels...)...) })
	}
	if m.Kind != Counter {
		return
	}
	sums := make(map[string]float64) // by the label after the sequencer, if there is one
	for n := range all[own:] {
		m.ofSequencer(&all[own+n], func(v float64, labels ...string) { sums[strings.Join(labels, "")] += v })
	}
	for label, sum := range sums {
		put(sum, []string{otherLabel, label}[:len(m.Labels)]...)
	}
}

// sequencers returns all sequencers; the first own ones have metrics of their
// own.
func (s *Set) sequencers() (all []Sequencer, own int) {
	all = s.config.Sequencers()
	s.mu.Lock()
	defer s.mu.Unlock()
	// Known ones come first, then the busiest.
	rank := func(q *Sequencer) int {
		switch own, known := s.own[q.Name]; {
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
		if n < maxSequencers && rank(&all[n]) < 2 {
			own = n + 1
		}
		next[all[n].Name] = n < own
	}
	s.own = next
	return all, own
}
