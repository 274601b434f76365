package main

import (
	"cmp"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/firnid/firn"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/listen"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/metrics"
	"github.com/firnid/firn/server/service"
)

// figures are what the sequencers of a backend have done, for metrics.
func (b backend) figures() (all []metrics.Sequencer) {
	made := func(name string, s firn.Stats) metrics.Sequencer {
		return metrics.Sequencer{Name: name, IDs: s.IDs, Batches: s.Batches, Waits: s.Waits, Waited: s.TotalWait, Lead: s.Lead}
	}
	if b.static != nil {
		b.static.Stats(func(name string, s firn.Stats) { all = append(all, made(name, s)) })
	}
	if b.cluster != nil {
		now := time.Now()
		b.cluster.Stats(func(name string, s sequencer.Stats) {
			m := made(name, s.Stats)
			k := s.Keeper
			m.Stored, m.Attached, m.Node, m.WindowLeft = true, holds(s.State, now), s.State.Node, s.State.Until.Sub(now)
			m.Requests, m.Failures, m.Unknown, m.Refused = k.Requests, k.Failed, k.Unknown, k.Refused
			m.Applied = k.Applied
			m.Acquired, m.Renewed, m.Released, m.Lost, m.Expired, m.Alarms = k.Acquired, k.Renewed, k.Released, k.Lost, k.Expired, k.Alarms
			all = append(all, m)
		})
	}
	return all
}

// storeMetrics has metrics show whether the store answers, and how far this clock is from those
// of other servers, which the Comparer that is returned finds out. It is nil without a store.
func (s *serving) storeMetrics(c *metrics.Config, cluster *service.Cluster) *members.Comparer {
	if cluster == nil {
		return nil
	}
	clock := members.NewComparer(cluster.Store(), s.self, nil)
	c.StoreUp, c.ClockOffset = s.answers.Up, clock.Offset
	return clock
}

// self is what this server is listed as; "" without a store.
func (s *serving) self() string {
	if s.announcer == nil {
		return ""
	}
	return s.announcer.ID()
}

// holds reports whether a node number is held now.
func holds(s sequencer.State, now time.Time) bool {
	return (s.Phase == sequencer.Attached || s.Phase == sequencer.Losing) && s.Until.After(now)
}

// outcomeOf is how a request ended that was answered with this status.
func outcomeOf(status int) metrics.Outcome {
	switch {
	case status >= http.StatusInternalServerError:
		return metrics.Failed
	case status >= http.StatusBadRequest:
		return metrics.Refused
	}
	return metrics.OK
}

// outcomeOfCode is how a call ended.
func outcomeOfCode(code codes.Code) metrics.Outcome {
	switch code {
	case codes.OK:
		return metrics.OK
	case codes.Internal, codes.Unavailable, codes.Unknown, codes.DataLoss:
		return metrics.Failed
	}
	return metrics.Refused
}

// addressOf is where other servers ask this one: over gRPC, wherever that is spoken.
func addressOf(endpoints []*endpoint, host string) (address string) {
	for _, e := range endpoints {
		tcp, ok := e.listener.Addr().(*net.TCPAddr)
		if !ok {
			continue
		}
		text := tcp.String()
		if tcp.IP.IsUnspecified() {
			text = net.JoinHostPort(host, strconv.Itoa(tcp.Port))
		}
		if len(e.only) == 0 || slices.Contains(e.only, listen.GRPC) {
			return text
		}
		address = cmp.Or(address, text)
	}
	return address
}

// describe says what this server tells the others about itself.
func (s *serving) describe(b backend, endpoints []*endpoint) func() members.Member {
	m := members.Member{Version: version, Started: time.Now().UTC().Truncate(time.Millisecond), TLS: s.tls.Cert != ""}
	m.Host, _ = os.Hostname()
	if m.Address = s.advertise; m.Address == "" {
		m.Address = addressOf(endpoints, m.Host)
	}
	return func() members.Member {
		m := m
		m.Holds = []members.Held{}
		if b.peers != nil {
			m.Forwarded = b.peers.Forwarded()
		}
		now := time.Now()
		b.cluster.Stats(func(name string, q sequencer.Stats) {
			m.IDs += q.IDs
			if holds(q.State, now) {
				m.Holds = append(m.Holds, members.Held{Sequencer: name, Node: q.State.Node, Until: q.State.Until.UTC().Truncate(time.Millisecond), IDs: q.IDs})
			}
		})
		return m
	}
}
