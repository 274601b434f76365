package respapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/service"
)

// Config says what a Server serves, to whom, and within which limits. Only the
// Backend is needed; the zero value of any other field means what the field
// says.
type Config struct {
	// Backend finds the sequencers. What it returns for a name is kept by every
	// connection, until it fails to give an ID.
	Backend service.Backend

	// Limit is how long a command may wait for its IDs; 0 means
	// service.DefaultLimit.
	Limit time.Duration

	// MaxCount is how many IDs a command can have; 0 means service.MaxCount.
	MaxCount int

	// MaxBytes is how many bytes an argument of a command can have; all of a
	// command can have twice as many. It is less for clients that have not said
	// who they are. 0 means service.DefaultBody.
	MaxBytes int

	// MaxConns is how many connections the listener allows, for INFO; 0 means
	// 10,000, as in Redis.
	MaxConns int

	// RefuseUnsafe makes INCR an error for layouts whose IDs can exceed 2^53,
	// where clients in JavaScript round integers. Without it the first such ID is
	// logged.
	RefuseUnsafe bool

	// IdleTimeout is how long a connection may be silent between commands; 0 means
	// that it may be for ever, as in Redis: clients keep a connection for hours
	// and are surprised when it is closed, and one that is dead ends by TCP's
	// keep-alive. One that has to say who it is has no longer than ReadTimeout.
	IdleTimeout time.Duration

	// ReadTimeout is how long a command may take to arrive, from its first byte to
	// its last; 0 means DefaultReadTimeout.
	ReadTimeout time.Duration

	// WriteTimeout is how long a client may take to receive a piece of its
	// answers, of 64 KiB and more, and up to an eighth of it more; 0 means
	// DefaultWriteTimeout.
	WriteTimeout time.Duration

	// Auth knows who may do what; nil lets everybody do everything. A client shows
	// a token with AUTH, or a certificate.
	Auth auth.Authorizer

	// TLSState returns the TLS state of a connection, whose handshake is over, or
	// nil; nil means that none has one.
	TLSState func(net.Conn) *tls.ConnectionState

	// Version is Firn's, for INFO and HELLO; "" means "unknown".
	Version string

	// Log is told of failures that are nobody's but the server's, and of every
	// command at the level debug; nil means that nobody is. The context of a line
	// has the ID of the request, see package requestid: RESP has no place for it,
	// so that clients neither name requests nor learn their names.
	Log *slog.Logger

	// Trace is told when commands that have arrived together begin to be answered:
	// with pipelining these are many, and a span for each would cost more than
	// they do. It returns the context of what is done for them, and a function
	// that is told what they were. nil means that nobody is.
	Trace func(ctx context.Context) (_ context.Context, end func(Answered))

	// Observe is told of all commands: the name in lower case ("unknown" for all
	// that there are not, "invalid" for what breaks the protocol), of how many
	// that are alike and were served together, how many IDs each gave, how long
	// each took, which is its share of the time, and whether the answer was an
	// error. It must be quick and safe for use by many goroutines at once; nil
	// means that nobody is told.
	Observe func(command string, n, ids int, d time.Duration, err bool)
}

// An Answered is commands that arrived together, and were answered together.
type Answered struct {
	First    string // the name of the first, as Observe has it
	Commands int
	IDs      int
	Errors   int
}

// What a Config means where it says nothing.
const (
	DefaultReadTimeout  = 10 * time.Second
	DefaultWriteTimeout = 30 * time.Second
)

// A Server answers RESP. It must be made by NewServer. Its methods are safe for
// use by many goroutines at once.
type Server struct {
	c       Config
	started time.Time
	ctx     context.Context // of all commands; done when Close is called
	cancel  context.CancelFunc
	ours    limits // of clients that may do something
	others  limits // of those that have not said who they are

	lastID                            atomic.Int64 // of a connection
	warned                            atomic.Bool  // of an integer above 2^53
	waiting                           atomic.Int64 // connections whose command waits for IDs
	totalConns, totalCommands, totalN atomic.Uint64
	totalIn, totalOut                 atomic.Uint64 // bytes

	mu        sync.Mutex // guards what follows
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	stopping  bool
	empty     chan struct{} // closed when it stops and has no connections
}

// NewServer makes a Server. It panics if c has no Backend.
func NewServer(c Config) *Server {
	if c.Backend == nil {
		panic("respapi: NewServer needs a Config with a Backend")
	}
	if c.Limit == 0 {
		c.Limit = service.DefaultLimit
	}
	if c.MaxCount == 0 {
		c.MaxCount = service.MaxCount
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = service.DefaultBody
	}
	if c.MaxConns == 0 {
		c.MaxConns = 10_000
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = DefaultReadTimeout
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.TLSState == nil {
		c.TLSState = func(net.Conn) *tls.ConnectionState { return nil }
	}
	if c.Version == "" {
		c.Version = "unknown"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		c: c, started: time.Now(), ours: limitsOf(c.MaxBytes), others: strangerLimits(c.MaxBytes),
		listeners: make(map[net.Listener]struct{}), conns: make(map[*conn]struct{}), empty: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve serves the connections of a listener, which it closes, until Shutdown
// or Close; then it returns net.ErrClosed. Connections may outlast it.
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
		nc, err := l.Accept() // which package listen tries again
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
	c := &conn{s: s, nc: nc, id: s.lastID.Add(1)}
	c.listing.began = time.Now()
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
		// As in net/http, a panic ends only the connection it is in.
		if what := recover(); what != nil {
			s.c.Log.Error("connection panicked", "peer", nc.RemoteAddr(), "panic", what, "stack", string(debug.Stack()))
		}
	}()
	c.who = s.firstWho(nc)
	c.serve()
}

// leave forgets a connection.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.checkEmpty()
}

// checkEmpty closes s.empty when it is time to. Its caller holds s.mu.
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

// Shutdown closes the listeners and all connections that are idle, lets
// commands that have arrived finish, and waits until all connections are closed
// or ctx is done; then it returns ctx's error, and Close ends what is left.
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

// Close closes the listeners and all connections, and ends all commands that
// wait. It does not wait for them: Shutdown after it does.
func (s *Server) Close() error {
	s.cancel()
	return s.stop(func(c *conn) { _ = c.nc.Close() })
}

// stop closes the listeners and does end to all connections.
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

// Conns is how many connections there are at this moment.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
