package rpcapi

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
)

// generations are the gRPC servers of a Server, one after the other. A gRPC
// server sends its clients GOAWAY only when it shuts down, and then accepts no
// more connections. So Drain shuts one server down, and another one accepts
// connections meanwhile.
type generations struct {
	now atomic.Pointer[generation]

	mu      sync.Mutex // guards the fields below
	all     []*generation
	taking  []net.Listener // listeners of Serve
	stopped bool
}

// A generation is a gRPC server and its listener.
type generation struct {
	grpc  *grpc.Server
	conns chan net.Conn
	done  chan struct{} // closed with the listener
	close sync.Once
	ended sync.WaitGroup
}

// newGeneration makes a generation, which accepts connections.
func (s *Server) newGeneration() *generation {
	g := &generation{grpc: s.newGRPC(), conns: make(chan net.Conn), done: make(chan struct{})}
	s.mu.Lock()
	s.all = append(s.all, g)
	s.mu.Unlock()
	return g
}

// serve begins to accept connections, once.
func (g *generation) serve() {
	g.ended.Go(func() { _ = g.grpc.Serve(g) }) // it returns an error when it is shut down
}

// Accept waits for a connection.
func (g *generation) Accept() (net.Conn, error) {
	select {
	case c := <-g.conns:
		return c, nil
	case <-g.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (g *generation) Close() error {
	g.close.Do(func() { close(g.done) })
	return nil
}

// Addr returns a placeholder.
func (g *generation) Addr() net.Addr { return &net.TCPAddr{} }

// Serve serves the connections of a listener until Shutdown, and closes the
// listener.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return grpc.ErrServerStopped
	}
	if len(s.taking) == 0 {
		s.now.Load().serve()
	}
	s.taking = append(s.taking, l)
	s.mu.Unlock()
	for {
		conn, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.stopped || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		s.hand(conn)
	}
}

// hand passes a connection to the current gRPC server.
func (s *Server) hand(conn net.Conn) {
	for {
		g := s.now.Load()
		select {
		case g.conns <- conn:
			return
		case <-g.done:
			if s.now.Load() == g {
				_ = conn.Close()
				return
			}
		}
	}
}

// Drain makes the health service report that the server is about to stop, and
// asks connected clients to reconnect once their calls have ended. New
// connections are still served.
func (s *Server) Drain() {
	s.drain.Do(func() {
		close(s.drains)
		s.mu.Lock()
		serving := len(s.taking) > 0 && !s.stopped
		s.mu.Unlock()
		if !serving {
			return
		}
		old, next := s.now.Load(), s.newGeneration()
		next.serve()
		s.now.Store(next)
		old.ended.Go(old.grpc.GracefulStop) // Shutdown waits for it
	})
}

// Shutdown ends streams after their current message, lets calls finish until
// ctx is done, and then ends them. No call runs when it returns.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop.Do(func() { close(s.stops) })
	s.mu.Lock()
	s.stopped = true
	all, taking := s.all, s.taking
	s.mu.Unlock()
	s.drain.Do(func() { close(s.drains) })
	for _, l := range taking {
		_ = l.Close()
	}
	var graceful sync.WaitGroup
	for _, g := range all {
		graceful.Go(func() {
			g.grpc.GracefulStop()
			g.ended.Wait()
		})
	}
	done := make(chan struct{})
	go func() {
		graceful.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		for _, g := range all {
			g.grpc.Stop()
		}
		<-done
		return ctx.Err()
	}
}
