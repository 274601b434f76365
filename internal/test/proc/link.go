package proc

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// A Link passes connections on to a server, and can be cut. Its methods are
// safe for concurrent use by multiple goroutines.
type Link struct {
	// Address is where it listens, as HOST:PORT.
	Address string

	target atomic.Pointer[string]
	isCut  atomic.Bool
	isDeaf atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// NewLink makes a Link to an address. It ends with the test.
func NewLink(t testing.TB, target string) *Link {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &Link{Address: listener.Addr().String(), conns: make(map[net.Conn]bool)}
	l.Lead(target)
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { l.pass(conn, &passing) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.Cut(true)
		passing.Wait()
	})
	return l
}

// Lead makes the Link lead new connections to another address. Present ones
// stay.
func (l *Link) Lead(target string) { l.target.Store(&target) }

// Cut closes all connections if cut is set, and new ones until it is unset.
func (l *Link) Cut(cut bool) {
	l.isCut.Store(cut)
	if cut {
		l.Reset()
	}
}

// Reset closes all connections.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}

// CutAnswers discards everything that the server sends, while it is set.
// Discarded data does not arrive later: the connections are closed when it is
// unset.
func (l *Link) CutAnswers(cut bool) {
	l.isDeaf.Store(cut)
	if !cut {
		l.Reset()
	}
}

func (l *Link) pass(client net.Conn, passing *sync.WaitGroup) {
	server, err := net.Dial("tcp", *l.target.Load())
	if err != nil {
		_ = client.Close()
		return
	}
	l.mu.Lock()
	l.conns[client], l.conns[server] = true, true
	l.mu.Unlock()
	if l.isCut.Load() {
		_, _ = client.Close(), server.Close()
	}
	passing.Go(func() { l.copy(server, client, nil) })
	l.copy(client, server, &l.isDeaf)
	l.mu.Lock()
	delete(l.conns, client)
	delete(l.conns, server)
	l.mu.Unlock()
}

func (l *Link) copy(to, from net.Conn, lose *atomic.Bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if n > 0 && (lose == nil || !lose.Load()) {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
