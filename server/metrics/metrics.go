// Package metrics shows what a server does to Prometheus. docs/metrics.md says what
// each metric means.
package metrics

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Sequencer is what one sequencer of this server has done since it was opened. Its
// counts do not fall.
type Sequencer struct {
	Name       string
	IDs        uint64
	Batches    uint64
	Waits      uint64        // calls that had to wait
	Waited     time.Duration // all these together
	Lead       time.Duration // of the last ID's time over the clock
	Stored     bool          // its node number is kept in a store; then what follows is set
	Attached   bool          // it holds a node number
	Node       uint64
	WindowLeft time.Duration // less than 0 where it is over
	Requests   uint64        // to the store
	Failures   uint64        // of these, with an error
	Unknown    uint64        // compare-and-swaps whose result is unknown
	Refused    uint64        // compare-and-swaps that came too late
	Acquired   uint64        // node numbers
	Renewed    uint64        // windows
	Released   uint64        // node numbers
	Lost       uint64        // node numbers, to another one
	Alarms     uint64
}

// MaxSequencers is how many sequencers have metrics of their own: those with the most
// IDs. Others are counted together as Other.
const MaxSequencers = 500

// Other is the label of what is counted together. No sequencer can have that name.
const Other = "_other"

// A Kind is a type of metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// A Metric is one that there is.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string

	value func(*Sequencer) (float64, bool) // of those of a sequencer
}

func count(f func(*Sequencer) uint64) func(*Sequencer) (float64, bool) {
	return func(s *Sequencer) (float64, bool) { return float64(f(s)), true }
}

func stored(f func(*Sequencer) float64) func(*Sequencer) (float64, bool) {
	return func(s *Sequencer) (float64, bool) { return f(s), s.Stored }
}

var (
	ofSequencer = []string{"sequencer"}
	ofProtocol  = []string{"protocol"}
)

// All returns every metric of Firn's own, in the order of docs/metrics.md.
func All() []Metric {
	return []Metric{
		{"firn_ids_total", Counter, ofSequencer, "IDs made.", count(func(s *Sequencer) uint64 { return s.IDs })},
		{"firn_batches_total", Counter, ofSequencer, "Batches made; a single ID may be one.", count(func(s *Sequencer) uint64 { return s.Batches })},
		{"firn_waits_total", Counter, ofSequencer, "Calls that had to wait for the clock or a node number.", count(func(s *Sequencer) uint64 { return s.Waits })},
		{"firn_wait_seconds_total", Counter, ofSequencer, "How long calls have waited, all together.", func(s *Sequencer) (float64, bool) { return s.Waited.Seconds(), true }},
		{"firn_lead_seconds", Gauge, ofSequencer, "How far the last ID's time is ahead of the clock; below 0 when no IDs are made. Near MaxAhead, callers wait.", func(s *Sequencer) (float64, bool) { return s.Lead.Seconds(), true }},
		{"firn_attached", Gauge, ofSequencer, "1 if this server holds a node number of the sequencer, else 0.", stored(func(s *Sequencer) float64 {
			if s.Attached {
				return 1
			}
			return 0
		})},
		{"firn_node", Gauge, ofSequencer, "The node number, where one is held.", func(s *Sequencer) (float64, bool) { return float64(s.Node), s.Stored && s.Attached }},
		{"firn_window_left_seconds", Gauge, ofSequencer, "How long the node number is held without a word from the store. Near 0 while IDs are made, the store does not answer.", func(s *Sequencer) (float64, bool) { return s.WindowLeft.Seconds(), s.Stored && s.Attached }},
		{"firn_store_requests_total", Counter, ofSequencer, "Requests to the store.", stored(func(s *Sequencer) float64 { return float64(s.Requests) })},
		{"firn_store_failures_total", Counter, ofSequencer, "Requests to the store that ended in an error.", stored(func(s *Sequencer) float64 { return float64(s.Failures) })},
		{"firn_cas_unknown_total", Counter, ofSequencer, "Compare-and-swaps whose result is unknown.", stored(func(s *Sequencer) float64 { return float64(s.Unknown) })},
		{"firn_cas_refused_total", Counter, ofSequencer, "Compare-and-swaps that were refused, as another one was faster.", stored(func(s *Sequencer) float64 { return float64(s.Refused) })},
		{"firn_nodes_acquired_total", Counter, ofSequencer, "Node numbers acquired.", stored(func(s *Sequencer) float64 { return float64(s.Acquired) })},
		{"firn_renewals_total", Counter, ofSequencer, "Windows renewed.", stored(func(s *Sequencer) float64 { return float64(s.Renewed) })},
		{"firn_nodes_released_total", Counter, ofSequencer, "Node numbers given back.", stored(func(s *Sequencer) float64 { return float64(s.Released) })},
		{"firn_nodes_lost_total", Counter, ofSequencer, "Node numbers that another one has taken over, after a pause longer than the window.", stored(func(s *Sequencer) float64 { return float64(s.Lost) })},
		{"firn_alarms_total", Counter, ofSequencer, "Alarms: a clone of this process, or a store that went back. The log says more.", stored(func(s *Sequencer) float64 { return float64(s.Alarms) })},
		{"firn_requests_total", Counter, []string{"protocol", "outcome"}, "Requests by their outcome: ok, refused (the client's fault) or failed (the server's).", nil},
		{"firn_request_seconds", Histogram, ofProtocol, "How long requests took.", nil},
		{"firn_forwards_total", Counter, []string{"result"}, "Calls that another server was asked for, as this one had no node number: ok or failed.", nil},
		{"firn_connections", Gauge, ofProtocol, "Connections that are open.", nil},
		{"firn_build_info", Gauge, []string{"version"}, "Always 1.", nil},
	}
}

// An Outcome is how a request ended.
type Outcome int

// The outcomes.
const (
	OK Outcome = iota
	Refused
	Failed
	outcomes
)

var outcomeNames = [outcomes]string{"ok", "refused", "failed"}

// A Set is the metrics of one server. It must be made by New, and is safe for use by
// many goroutines at once.
type Set struct {
	registry *prometheus.Registry
	requests map[string]*[outcomes]prometheus.Counter // by protocol; not changed after New
	seconds  map[string]prometheus.Observer
}

// Config says what a Set is of.
type Config struct {
	Version   string
	Protocols []string

	// Sequencers returns what each sequencer has done. It is called at every scrape.
	Sequencers func() []Sequencer

	// Forwards is how many calls others have answered, and how many nobody; nil where none
	// is forwarded.
	Forwards func() (answered, failed uint64)

	// Connections is how many of a protocol are open; nil if that is not known.
	Connections func(protocol string) int64
}

// New makes a Set.
func New(c Config) *Set {
	s := &Set{registry: prometheus.NewRegistry(), requests: make(map[string]*[outcomes]prometheus.Counter), seconds: make(map[string]prometheus.Observer)}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	of := &ofSequencers{c: c}
	for _, m := range All() {
		switch {
		case m.value != nil:
			of.metrics = append(of.metrics, m)
			of.descs = append(of.descs, prometheus.NewDesc(m.Name, m.Help, m.Labels, nil))
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
			v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: m.Name, Help: m.Help,
				Buckets: []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10},
			}, m.Labels)
			for _, p := range c.Protocols {
				s.seconds[p] = v.WithLabelValues(p)
			}
			s.registry.MustRegister(v)
		case m.Name == "firn_forwards_total":
			if c.Forwards == nil {
				continue
			}
			for _, result := range []string{"ok", "failed"} {
				s.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: m.Name, Help: m.Help, ConstLabels: prometheus.Labels{"result": result}},
					func() float64 {
						answered, failed := c.Forwards()
						if result == "ok" {
							return float64(answered)
						}
						return float64(failed)
					}))
			}
		case m.Name == "firn_connections":
			if c.Connections == nil {
				continue
			}
			for _, p := range c.Protocols {
				s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: m.Name, Help: m.Help, ConstLabels: prometheus.Labels{"protocol": p}},
					func() float64 { return float64(c.Connections(p)) }))
			}
		case m.Name == "firn_build_info":
			s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: m.Name, Help: m.Help, ConstLabels: prometheus.Labels{"version": c.Version}},
				func() float64 { return 1 }))
		}
	}
	s.registry.MustRegister(of)
	return s
}

// Observe counts a request. It does not allocate. The protocol is one of Config.
func (s *Set) Observe(protocol string, o Outcome, d time.Duration) {
	if r := s.requests[protocol]; r != nil {
		r[o].Inc()
		s.seconds[protocol].Observe(d.Seconds())
	}
}

// Handler answers scrapes.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
}

// ofSequencers collects the metrics of sequencers when they are asked for.
type ofSequencers struct {
	c       Config
	metrics []Metric
	descs   []*prometheus.Desc
}

func (o *ofSequencers) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range o.descs {
		ch <- d
	}
}

func (o *ofSequencers) Collect(ch chan<- prometheus.Metric) {
	all := o.c.Sequencers()
	slices.SortFunc(all, func(a, b Sequencer) int { return cmp.Or(cmp.Compare(b.IDs, a.IDs), cmp.Compare(a.Name, b.Name)) })
	for i, m := range o.metrics {
		kind := prometheus.CounterValue
		if m.Kind == Gauge {
			kind = prometheus.GaugeValue
		}
		others, some := 0.0, false
		for n := range all {
			v, ok := m.value(&all[n])
			switch {
			case !ok:
			case n < MaxSequencers:
				ch <- prometheus.MustNewConstMetric(o.descs[i], kind, v, all[n].Name)
			case m.Kind == Counter:
				others, some = others+v, true
			}
		}
		if some {
			ch <- prometheus.MustNewConstMetric(o.descs[i], kind, others, Other)
		}
	}
}
