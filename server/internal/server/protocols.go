package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/console"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/protocol/respapi"
	"github.com/firnid/firn/server/internal/protocol/rpcapi"
	"github.com/firnid/firn/server/internal/service"
)

// protocols are the protocols that the Server speaks.
var protocols = [...]listen.Protocol{listen.HTTP, listen.GRPC, listen.RESP}

// metricsConfig returns what the metrics show.
func (s *Server) metricsConfig() metrics.Config {
	m := metrics.Config{
		Version: s.config.Version, Sequencers: s.backends.figures,
		// which it bounds
		Ready: func() bool { return !s.handler.Draining() && s.backends.backend.Ready(context.Background()) == nil },
	}
	if s.files.tls != nil {
		m.Expiry = s.files.tls.Expiry
	}
	for _, p := range protocols {
		m.Protocols = append(m.Protocols, p.String())
	}
	m.Connections = func(protocol string) int64 { return s.open(protocols[slices.Index(m.Protocols, protocol)]) }
	if s.backends.storeBackend != nil {
		m.StoreUp = s.backends.answers.Up
	}
	if s.guard != nil {
		m.Clients = func(yield func(string, uint64, uint64) bool) { s.guard.Set().Usage(yield) }
	}
	if s.config.IssueLog != nil {
		m.LostLines = s.config.IssueLog.Lost
	}
	if s.backends.peers != nil {
		m.Forwards = s.backends.peers.Forwards
	}
	return m
}

// front returns what all protocols have in common. The console does not use the
// Auth: it gets the guard, to identify visitors by their sessions too, and then
// decides by visitor.
func (s *Server) front(p listen.Protocol) service.Front {
	f := service.Front{
		Backend: s.backends.backend, VeilKeys: s.config.VeilKeys, RequestTimeout: s.config.RequestTimeout,
		Limits: s.config.Limits, Logger: s.config.Logger,
		Observe: func(k service.Kind, d time.Duration, n int) { s.metrics.Observe(p.String(), outcomeOf(k), d, n) },
	}
	if s.guard != nil { // otherwise Auth stays nil, and is not a nil *auth.Guard
		f.Auth = s.guard
	}
	if s.config.IssueLog != nil {
		f.Issued = s.config.IssueLog.Add
	}
	return f
}

// newConsole makes the web pages.
func (s *Server) newConsole() *console.Console {
	c := console.Config{
		Front:   s.front(listen.HTTP),
		Guard:   s.guard,
		Figures: s.backends.figures,
		Layout:  s.config.Sequencers.Layout,
		Version: s.config.Version,
	}
	if s.config.Static != nil {
		c.Layout = s.config.Static.Layout
	}
	if s.backends.announcer != nil {
		c.Self = s.backends.announcer.ID
	}
	return console.New(c)
}

func (s *Server) newHandler() *httpapi.Handler {
	c := httpapi.Config{
		Front: s.front(listen.HTTP), Console: s.pages, Metrics: s.metrics.Handler(),
		AnyHost: !s.config.TLS.IsZero() || s.config.TokenFile != "", Hosts: s.config.Hosts,
		Trace: s.tracer.HTTP(!s.config.TLS.IsZero()),
	}
	if host, _, err := net.SplitHostPort(s.config.Advertise); err == nil {
		c.Hosts = append([]string{host}, c.Hosts...)
	}
	if s.backends.storeBackend != nil {
		c.Owner = s.backends.storeBackend.Owner
	}
	return httpapi.NewHandler(c)
}

func (s *Server) newRPC() *rpcapi.Server {
	return rpcapi.NewServer(rpcapi.Config{Front: s.front(listen.GRPC), Options: s.tracer.GRPCServer()})
}

func (s *Server) newRESP() *respapi.Server {
	return respapi.NewServer(respapi.Config{
		Front: s.front(listen.RESP), IdleTimeout: s.config.RESPIdle, RefuseUnsafe: s.config.RESPRefuseUnsafe,
		Version: s.config.Version, Trace: s.tracer.RESP(),
	})
}

// authenticates returns what reports whether a client is authenticated by its
// certificate; nil if clients need not authenticate.
func (s *Server) authenticates() func(*tls.ConnectionState) bool {
	if s.guard == nil {
		return nil
	}
	return func(state *tls.ConnectionState) bool {
		return s.guard.Allow(&auth.Credentials{TLS: state}, auth.Connect, "") == nil
	}
}

// outcomeOf returns the outcome of a request, for all protocols.
func outcomeOf(k service.Kind) metrics.Outcome {
	switch {
	case k == service.NoProblem:
		return metrics.OK
	case k == service.Cancelled:
		return metrics.Cancelled
	case k.Status() >= http.StatusInternalServerError:
		return metrics.Failed
	}
	return metrics.Refused
}
