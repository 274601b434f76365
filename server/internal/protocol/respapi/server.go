package respapi

import (
	"cmp"
	"context"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/internal/service"
)

// Config is the configuration of a Server. Only Front.Backend is required; the
// zero value of every other field has the meaning given at the field.
type Config struct {
	// Front is what commands need. Of its Limits, Body is for the bytes of an
	// argument; a whole command may have twice as many, and an unauthenticated
	// client fewer. Read is for a command to arrive, from its first byte to its
	// last. Write is for a client to receive a piece of its answers, of 64 KiB or
	// more, and can be up to an eighth longer. RESP has no place for request IDs,
	// so clients neither choose nor see those that are logged.
	Front service.Front

	// RefuseUnsafe makes INCR return an error for layouts whose IDs can exceed
	// 2^53, where JavaScript clients round integers. Otherwise the first such ID
	// is logged.
	RefuseUnsafe bool

	// IdleTimeout is how long a connection may be silent between commands. 0
	// means forever, as in Redis: clients keep connections for hours and are
	// surprised when they are closed, and TCP keep-alive ends dead ones. A
	// client that has to authenticate has only Limits.Read.
	IdleTimeout time.Duration

	// Version is the version of Firn for INFO and HELLO; "" means "unknown".
	Version string

	// Trace is called when commands that arrived together begin to be answered:
	// a pipeline has many, and a span for each would cost more than the
	// commands. It returns their context, and a function that is called with
	// the name of the first one, as in COMMAND ("unknown" for unknown commands,
	// "invalid" for protocol errors), and the numbers of commands, IDs and
	// errors. nil traces nothing.
	Trace func(ctx context.Context) (_ context.Context, end func(first string, commands, ids, errors int))
}

// A Server answers RESP. It must be made by NewServer, and is safe for
// concurrent use.
type Server struct {
	config   Config
	front    *service.Front // of config
	commands []command
	ctx      context.Context // of all commands; done when Shutdown ends them
	cancel   context.CancelFunc
	known    limits // for authenticated clients
	stranger limits // for others

	lastID atomic.Int64 // ID of the last connection
	warned atomic.Bool  // about an integer above 2^53

	mu       sync.Mutex // guards the fields below
	conns    map[*conn]struct{}
	stopping bool
	running  sync.WaitGroup // of conns
}

// NewServer makes a Server. It panics if c.Front has no Backend.
func NewServer(c Config) *Server {
	c.Version = cmp.Or(c.Version, "unknown")
	c.Front = c.Front.WithDefaults()
	c.Front.NameSequencer = "name its sequencer with SEQUENCER name"
	s := &Server{
		config: c, commands: commands, conns: make(map[*conn]struct{}),
		known: knownLimits(c.Front.Limits.Body), stranger: strangerLimits(c.Front.Limits.Body),
	}
	s.front = &s.config.Front
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve serves the connections of a listener until it is closed, and returns
// the error of Accept. Connections may outlast the call.
func (s *Server) Serve(l net.Listener) error {
	for {
		nc, err := l.Accept() // package listen retries
		if err != nil {
			return err
		}
		go s.serveConn(nc)
	}
}

// serveConn serves one connection until it ends, and closes it.
func (s *Server) serveConn(nc net.Conn) {
	defer nc.Close()
	c := &conn{server: s, nc: nc, id: s.lastID.Add(1), accepted: time.Now()}
	if !s.enter(c) {
		return
	}
	defer s.leave(c)
	defer func() {
		// As in net/http, a panic ends only its own connection.
		if what := recover(); what != nil {
			s.front.Logger.Error("connection panicked", "peer", nc.RemoteAddr(), "panic", what, "stack", string(debug.Stack()))
			s.front.Observe(service.Internal, 0, 1)
		}
	}()
	c.creds = s.initialCreds(nc)
	c.serve()
}

// enter adds a connection, unless the Server is stopping.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.conns[c] = struct{}{}
		s.running.Add(1)
	}
	return !s.stopping
}

// leave removes a connection.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.running.Done()
}

// Shutdown closes idle connections, and refuses new ones. Commands that have
// arrived may finish until ctx is done, and are then ended. No connection is
// open when it returns. The caller closes the listeners.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop((*conn).stop)
	cut := context.AfterFunc(ctx, func() {
		s.cancel()
		s.stop(func(c *conn) { _ = c.nc.Close() })
	})
	s.running.Wait()
	if !cut() {
		return ctx.Err()
	}
	return nil
}

// stop calls end for every connection, and lets no more begin.
func (s *Server) stop(end func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for c := range s.conns {
		end(c)
	}
}
