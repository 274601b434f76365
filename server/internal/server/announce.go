package server

import (
	"cmp"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/service"
)

// describe returns a function that describes this server to the others of its
// store.
func (s *Server) describe(listeners []Listener) func() members.Server {
	m := members.Server{Version: s.config.Version, Started: time.Now().UTC().Truncate(time.Millisecond),
		TLS: !s.config.TLS.IsZero()}
	m.Host, _ = os.Hostname()
	m.Address = cmp.Or(s.config.Advertise, addressOf(listeners, m.Host))
	return func() members.Server {
		m := m
		m.Holds = []members.Held{}
		if s.backends.peers != nil {
			m.Forwarded = s.backends.peers.Forwarded()
		}
		now := time.Now()
		s.backends.storeBackend.Usage(func(name string, q *service.Usage) {
			m.IDs += q.IDs
			if q.Status.Holds(now) {
				m.Holds = append(m.Holds, members.Held{Sequencer: name, Node: q.Status.Node,
					Until: q.Status.Until.UTC().Truncate(time.Millisecond), IDs: q.IDs})
			}
			if k, wanted := q.Problem(); k != service.NoProblem && !wanted {
				m.Lacks = append(m.Lacks, members.Lack{Sequencer: name, Problem: k.String()})
			}
		})
		return m
	}
}

// addressOf returns the address of the first TCP listener.
func addressOf(listeners []Listener, host string) string {
	for _, l := range listeners {
		if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
			return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
		} else if ok {
			return tcp.String()
		}
	}
	return ""
}
