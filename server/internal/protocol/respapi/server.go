package respapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/veil"
)

// Config is the configuration of a Server. Only the Backend is required; the
// zero value of every other field has the meaning given at the field.
type Config struct {
	// Backend finds the sequencers.
	Backend service.Backend

	// Veil has the keys of veiled IDs, which INSPECT reads; nil has none.
	Veil veil.Keys

	// Limit is how long a command may wait for its IDs; 0 means
	// service.DefaultLimit.
	Limit time.Duration

	// Limits bound commands: the number of IDs, the bytes of an argument, of which
	// a whole command may have twice as many and a client that is not authenticated
	// fewer, the time for a command to arrive, from its first byte to its last, and
	// the time for a client to receive a piece of its answers, of 64 KiB or more,
	// which may be up to an eighth longer.
	Limits service.Limits

	// MaxConns is the connection limit that INFO reports; 0 means 10,000, as in
	// Redis.
	MaxConns int

	// RefuseUnsafe makes INCR return an error for layouts whose IDs can exceed
	// 2^53, where JavaScript clients round integers. Otherwise the first such ID
	// is logged.
	RefuseUnsafe bool

	// IdleTimeout is how long a connection may be silent between commands. 0 means
	// forever, as in Redis: clients keep connections for hours and are surprised
	// when they are closed, and TCP keep-alive ends dead ones. A client that has
	// to authenticate has only Limits.Read.
	IdleTimeout time.Duration

	// Auth decides what each client may do; nil allows everything. A client
	// authenticates with AUTH and a token, or with a certificate.
	Auth auth.Authorizer

	// TLSState returns the TLS state of a connection after its handshake, or nil;
	// a nil function means no TLS.
	TLSState func(net.Conn) *tls.ConnectionState

	// Version is the version of Firn for INFO and HELLO; "" means "unknown".
	Version string

	// Log receives the server's own failures, and every command at level debug;
	// nil discards them. The context of a line has a request ID, see package
	// requestid. RESP has no place for it, so clients neither choose nor see
	// request IDs.
	Log *slog.Logger

	// Trace is called when commands that arrived together begin to be answered: a
	// pipeline has many, and a span for each would cost more than the commands. It
	// returns their context, and a function that is called with the name of the
	// first one, as in COMMAND ("unknown" for unknown commands, "invalid" for
	// protocol errors), and the numbers of commands, IDs and errors. nil traces
	// nothing.
	Trace func(ctx context.Context) (_ context.Context, end func(first string, commands, ids, errors int))

	// Observe is called for all commands, also for input that is none: how many
	// equal ones were served together, how long each took as its share of the time,
	// and the kind of problem. It must be fast and safe for concurrent use; nil is
	// allowed.
	Observe func(n int, d time.Duration, k service.Kind)
}

// A Server answers RESP. It must be made by NewServer, and is safe for
// concurrent use.
type Server struct {
	c       Config
	take    service.Taker
	started time.Time
	ctx     context.Context // of all commands; done when Close is called
	cancel  context.CancelFunc
	ours    limits // for authenticated clients
	others  limits // for clients that are not authenticated

	lastID                            atomic.Int64 // ID of the last connection
	warned                            atomic.Bool  // about an integer above 2^53
	waiting                           atomic.Int64 // connections with a command that waits for IDs
	totalConns, totalCommands, totalN atomic.Uint64
	totalIn, totalOut                 atomic.Uint64 // bytes

	mu        sync.Mutex // guards the fields below
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	stopping  bool
	empty     chan struct{} // closed when the Server is stopping and has no connections
}

// NewServer makes a Server. It panics if c has no Backend.
func NewServer(c Config) *Server {
	if c.Backend == nil {
		panic("respapi: NewServer needs a Config with a Backend")
	}
	c.Limit = cmp.Or(c.Limit, service.DefaultLimit)
	c.Limits = c.Limits.WithDefaults()
	c.MaxConns = cmp.Or(c.MaxConns, 10_000)
	if c.TLSState == nil {
		c.TLSState = func(net.Conn) *tls.ConnectionState { return nil }
	}
	c.Version = cmp.Or(c.Version, "unknown")
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	s := &Server{
		c: c, started: time.Now(), ours: limitsOf(c.Limits.Body), others: strangerLimits(c.Limits.Body),
		listeners: make(map[net.Listener]struct{}), conns: make(map[*conn]struct{}), empty: make(chan struct{}),
	}
	s.take = service.Taker{Backend: c.Backend, Auth: c.Auth, Limit: c.Limit}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve serves the connections of a listener until Shutdown or Close, and then
// returns net.ErrClosed. It closes the listener. Connections may outlast the
// call.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return net.ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	for {
		nc, err := l.Accept() // package listen retries
		switch {
		case err == nil:
			go s.ServeConn(nc)
		case s.isStopping():
			return net.ErrClosed
		default:
			return err
		}
	}
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// ServeConn serves one connection until it ends, and closes it.
func (s *Server) ServeConn(nc net.Conn) {
	defer nc.Close()
	c := &conn{s: s, nc: nc, id: s.lastID.Add(1), accepted: time.Now()}
	s.mu.Lock()
	stopping := s.stopping
	if !stopping {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if stopping {
		return
	}
	s.totalConns.Add(1)
	defer s.leave(c)
	defer func() {
		// As in net/http, a panic ends only its own connection.
		if what := recover(); what != nil {
			s.c.Log.Error("connection panicked", "peer", nc.RemoteAddr(), "panic", what, "stack", string(debug.Stack()))
			if s.c.Observe != nil {
				s.c.Observe(1, 0, service.Internal)
			}
		}
	}()
	c.who = s.firstWho(nc)
	c.serve()
}

// leave removes a connection.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.checkEmpty()
}

// checkEmpty closes s.empty when it is time. The caller holds s.mu.
func (s *Server) checkEmpty() {
	if !s.stopping || len(s.conns) > 0 {
		return
	}
	select {
	case <-s.empty:
	default:
		close(s.empty)
	}
}

// Shutdown closes the listeners and all idle connections, lets commands that
// have arrived finish, and waits until all connections are closed. If ctx is
// done first it returns the error of ctx; Close then ends the rest.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop((*conn).stop)
	select {
	case <-s.empty:
		return nil
	default:
	}
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the listeners and all connections, and ends all waiting
// commands. It does not wait for them: call Shutdown afterwards.
func (s *Server) Close() error {
	s.cancel()
	return s.stop(func(c *conn) { _ = c.nc.Close() })
}

// stop closes the listeners and calls end for every connection.
func (s *Server) stop(end func(*conn)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	var errs []error
	for l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for c := range s.conns {
		end(c)
	}
	s.checkEmpty()
	return errors.Join(errs...)
}

// Conns returns the current number of connections.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
