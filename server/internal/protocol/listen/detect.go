package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// detect determines the protocol of a connection. The returned connection still
// has all its bytes, and is not nil even after an error.
func (m *Mux) detect(raw *countedConn) (net.Conn, Protocol, error) {
	if m.config.TLS == nil {
		return m.sniff(raw, raw, m.config.Authenticates == nil)
	}
	secure := tls.Server(raw, m.config.TLS)
	ctx, cancel := context.WithTimeout(m.ctx, m.config.Hello)
	defer cancel()
	raw.inHandshake = true
	err := secure.HandshakeContext(ctx)
	raw.inHandshake = false
	if err != nil {
		if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && e.Conn != nil {
			if p, sure := protocolOf(e.RecordHeader[:]); p == HTTP || !sure { // of a long method
				refuseHTTP(e.Conn, "this is HTTP, but this listener needs HTTPS: begin the URL with https://")
			}
		}
		return secure, 0, fmt.Errorf("TLS: %w", err)
	}
	state := secure.ConnectionState()
	needsNone := m.config.Authenticates == nil
	if !needsNone && m.config.Authenticates(&state) {
		MarkKnown(raw)
		needsNone = true
	}
	switch state.NegotiatedProtocol {
	case "h2":
		return &prefixedConn{Conn: secure, counted: raw}, GRPC, nil
	case "http/1.1":
		return &prefixedConn{Conn: secure, counted: raw}, HTTP, nil
	}
	return m.sniff(secure, raw, needsNone)
}

// methods are those that need no / or * after them to be recognized.
var methods = []string{"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "QUERY"}

// maxMethod is the length of the longest method that is recognized.
const maxMethod = 32

// sniff determines the protocol. A client that need not authenticate may take
// its time for the first byte, unless it is refused.
func (m *Mux) sniff(conn net.Conn, raw *countedConn, needsNone bool) (net.Conn, Protocol, error) {
	began := func() {}
	if needsNone && raw.slot {
		_ = conn.SetDeadline(time.Time{}) // fails only if Read does
		began = func() { _ = conn.SetDeadline(time.Now().Add(m.config.Hello)) }
	}
	first, p, err := sniff(conn, began)
	return &prefixedConn{Conn: conn, counted: raw, first: first}, p, err
}

// sniff reads as many bytes as needed to determine the protocol, and calls
// began after the first ones.
func sniff(conn net.Conn, began func()) (first []byte, p Protocol, err error) {
	first = make([]byte, 0, maxMethod+2)
	for {
		n, err := conn.Read(first[len(first):cap(first)])
		if len(first) == 0 {
			began()
		}
		first = first[:len(first)+n]
		p, sure := protocolOf(first)
		switch {
		case sure || len(first) > 0 && errors.Is(err, io.EOF): // the server of RESP rejects invalid input
			return first, p, nil
		case err != nil:
			return first, 0, err
		}
	}
}

// protocolOf determines the protocol that begins with these bytes, if they
// suffice; maxMethod+2 bytes always do.
func protocolOf(first []byte) (p Protocol, sure bool) {
	n := 0
	for n < len(first) && n <= maxMethod && isMethodChar(first[n]) {
		n++
	}
	switch word := string(first[:n]); {
	case n == len(first) && n <= maxMethod:
		return RESP, false
	case n == 0 || n > maxMethod || first[n] != ' ':
		return RESP, true
	case word == "PRI":
		return GRPC, true
	case slices.Contains(methods, word):
		return HTTP, true
	case n+1 == len(first):
		return RESP, false
	case first[n+1] == '/' || first[n+1] == '*':
		return HTTP, true
	}
	return RESP, true
}

// isMethodChar reports whether registered HTTP methods have the character.
func isMethodChar(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-' }
