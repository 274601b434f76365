// Package server assembles what firn serve runs: HTTP, gRPC and RESP on the
// same listeners, the console, metrics, and forwarding between the servers of a
// store.
package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/console"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/operate/storehealth"
	"github.com/firnid/firn/server/internal/operate/tracing"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/protocol/respapi"
	"github.com/firnid/firn/server/internal/protocol/rpcapi"
)

// A Server hands out IDs. It is safe for concurrent use, and must be made by
// New.
type Server struct {
	config   Config
	files    files
	guard    *auth.Guard // nil if everyone may do everything
	backends backends
	tracer   *tracing.Tracer
	metrics  *metrics.Set
	pages    *console.Console

	handler *httpapi.Handler
	web     *http.Server
	rpc     *rpcapi.Server
	resp    *respapi.Server

	watching     context.Context // done when requests have ended
	stopWatching context.CancelFunc
	listing      context.Context // done when the store should no longer list the Server
	stopListing  context.CancelFunc

	mu      sync.Mutex // guards the fields below, except for calls of Wait
	muxes   []*listen.Mux
	closed  bool
	running sync.WaitGroup // goroutines that accept connections
	watched sync.WaitGroup // goroutines that run until watching is done

	shutdown sync.Once
	stopped  error // of Shutdown
}

// New makes a Server, which does nothing until Serve. Call Shutdown to end it,
// whether or not it has served. The command has checked the Config.
func New(c Config) (*Server, error) {
	if (c.Store == nil) == (c.Static == nil) {
		return nil, errors.New("server: set either Config.Store or Config.Static")
	}
	c.Limits = c.Limits.WithDefaults()
	c.MaxConns = cmp.Or(c.MaxConns, listen.DefaultMaxConns)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	s := &Server{config: c}
	var err error
	if s.files, err = readFiles(&c); err != nil {
		return nil, err
	}
	s.guard = s.files.guard()
	s.tracer = tracing.New(c.Tracing, c.Version)
	if s.backends, err = newBackends(c, &s.files, s.tracer); err != nil {
		return nil, err
	}
	s.metrics = metrics.New(s.metricsConfig())
	s.pages = s.newConsole()
	s.handler = s.newHandler()
	s.web = httpapi.NewServer(s.handler)
	s.web.RegisterOnShutdown(s.pages.Close)
	s.rpc, s.resp = s.newRPC(), s.newRESP()
	s.watching, s.stopWatching = context.WithCancel(context.Background())
	s.listing, s.stopListing = context.WithCancel(s.watching)
	if c.TokenFile != "" {
		s.logTokens("tokens loaded")
	}
	return s, nil
}

// Serve answers requests on the listeners until Shutdown, and then returns nil.
// If a listener fails, Serve returns its error at once; the others serve until
// Shutdown. Serve closes the listeners, and may be called once.
func (s *Server) Serve(listeners ...Listener) error {
	done, err := s.start(listeners)
	if done == nil {
		for _, l := range listeners {
			_ = l.Close()
		}
	}
	if err != nil {
		return err
	}
	for range cap(done) {
		if err := <-done; err != nil {
			return err
		}
	}
	return nil
}

// start accepts connections and starts the background work. The channel has
// room for the errors of all listeners; it is nil if Shutdown came first.
func (s *Server) start(listeners []Listener) (done chan error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(listeners) == 0:
		return nil, errors.New("server: no listener to serve on")
	case s.closed:
		return nil, nil
	case s.muxes != nil:
		return nil, errors.New("server: Serve was already called")
	}
	conns, strangers := s.maxConns(len(listeners)), new(listen.Strangers)
	if slices.ContainsFunc(listeners, isExposed) {
		s.handler.Expose()
	}
	for _, l := range listeners {
		s.muxes = append(s.muxes, listen.New(l, listen.Config{
			TLS: s.files.tlsConfig(), Only: l.Only, MaxConns: conns, Hello: s.config.Limits.Read,
			Authenticates: s.authenticates(),
			Strangers:     strangers, Logger: s.config.Logger,
		}))
	}
	done = make(chan error, len(s.muxes))
	for _, mux := range s.muxes {
		s.running.Go(func() {
			err := mux.Serve()
			if s.isClosed() {
				err = nil
			}
			done <- err
		})
		// These end with the Mux, which reports its error.
		s.running.Go(func() { _ = s.web.Serve(mux.Listener(listen.HTTP)) })
		s.running.Go(func() { _ = s.rpc.Serve(mux.Listener(listen.GRPC)) })
		s.running.Go(func() { _ = s.resp.Serve(mux.Listener(listen.RESP)) })
	}
	s.watched.Go(func() { s.watchFiles(s.watching) })
	if s.backends.storeBackend != nil {
		describe := s.describe(listeners)
		s.watched.Go(func() { s.backends.announcer.Run(s.listing, describe) })
		s.watched.Go(func() { storehealth.Watch(s.watching, s.config.Store, s.config.Logger) })
	}
	return done, nil
}

// isExposed reports whether other machines can reach a listener.
func isExposed(l Listener) bool {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		return !tcp.IP.IsLoopback()
	}
	return l.Addr().Network() != "unix"
}

// maxConns returns how many connections each listener may have. It logs a
// warning if that is less than configured.
func (s *Server) maxConns(listeners int) int {
	files, err := listen.MaxOpenFiles()
	if err != nil {
		return s.config.MaxConns
	}
	n := listen.ConnsWithin(files, listeners, s.config.MaxConns)
	if n < s.config.MaxConns {
		s.config.Logger.Warn("fewer connections than configured: the system limits open files",
			"connections", n, "configured", s.config.MaxConns, "files", files, "hint",
			"raise the limit: ulimit -n, or LimitNOFILE= of systemd")
	}
	return n
}

// open returns how many connections of a protocol are open.
func (s *Server) open(protocol listen.Protocol) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mux := range s.muxes {
		n += mux.Open(protocol)
	}
	return n
}

// Drain makes /readyz answer 503 and removes the Server from the members of its
// store. Meanwhile the Server still answers requests, also with IDs of other
// servers, so that load balancers have time to notice. HTTP clients are asked
// to reconnect, gRPC clients when the Server shuts down; RESP has no message
// for that.
func (s *Server) Drain() {
	s.handler.Drain()
	s.rpc.Drain()
	s.stopListing()
}

// Shutdown closes the listeners, lets requests finish until ctx is done, and
// then ends them and returns the error of ctx. It gives back node IDs, and
// allows a moment for that after ctx is done. Nothing of the Server runs when
// Shutdown returns.
//
// It may be called more than once and concurrently. Later calls wait for the
// first one, and return its error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.shutdown.Do(func() { s.stopped = s.stop(ctx) })
	return s.stopped
}

// isClosed reports whether Shutdown was called.
func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) stop(ctx context.Context) error {
	s.Drain()
	s.mu.Lock()
	s.closed = true
	muxes := s.muxes
	s.mu.Unlock()
	for _, mux := range muxes {
		_ = mux.Close()
	}
	var all sync.WaitGroup
	var webErr, rpcErr, respErr error
	all.Go(func() { webErr = s.web.Shutdown(ctx) })
	all.Go(func() { rpcErr = s.rpc.Shutdown(ctx) })
	all.Go(func() { respErr = s.resp.Shutdown(ctx) })
	all.Wait()
	if webErr != nil {
		_ = s.web.Close()
	}
	s.running.Wait()
	s.stopWatching()
	s.pages.Close()
	s.backends.close(ctx, s.config.Logger)
	s.watched.Wait()
	return errors.Join(webErr, rpcErr, respErr)
}
