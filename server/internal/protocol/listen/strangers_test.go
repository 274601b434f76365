package listen

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// sum returns how many strangers there are, and what they hold.
func (s *Strangers) sum() (conns, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns.Len(), s.held
}

// isOpen reports whether the server has not closed a connection of a bubble.
func isOpen(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	defer conn.SetReadDeadline(time.Time{})
	_, err := conn.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// TestStrangers: connections that stop within a request hold together no more
// than they may, whatever they speak; those that go are the oldest, and never
// known ones. What has ended holds nothing.
func TestStrangers(t *testing.T) {
	cert, _ := nettest.Certificate(t)
	plain := func(text string) func(net.Conn) { return func(conn net.Conn) { _, _ = io.WriteString(conn, text) } }
	for what, row := range map[string]struct {
		tls  bool
		send func(net.Conn)
		cost int // at least, in KiB
	}{
		"nothing":       {false, func(net.Conn) {}, 8},
		"HTTP":          {false, plain("GET / HTTP/1.1\r\n" + strings.Repeat("a:\n", 300)), 28},
		"HTTP, long":    {false, plain("GET /" + strings.Repeat("a", 16<<10)), 512},
		"gRPC":          {false, plain("PRI * HTTP/2.0\r\n\r\n" + strings.Repeat("x", 4<<10)), 560},
		"RESP":          {false, plain("*2\r\n$20000\r\n" + strings.Repeat("x", 16<<10)), 512},
		"TLS, no end":   {true, plain("\x16\x03\x01\x40\x00\x01\x00\xff\xf0" + strings.Repeat("x", 15<<10)), 240},
		"TLS, and then": {true, func(conn net.Conn) { _, _ = io.WriteString(unverified(conn), "GET /"+strings.Repeat("a", 8<<10)) }, 256},
		"TLS, not answered": {true, func(conn net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, conn) }() // it is read, and that is all
			_ = unverified(writeOnly{conn}).Handshake()
		}, 32},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, all := nettest.NewPipes(), new(Strangers)
			c := Config{Hello: time.Hour, Strangers: all}
			if row.tls {
				c.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
			}
			serveMux(t, New(l, c))
			var known net.Conn = l.Dial()
			defer known.Close()
			if row.tls {
				known = unverified(known)
			}
			known.SetDeadline(time.Now().Add(must.Patience))
			must.Get(fmt.Fprintf(known, "GET /known HTTP/1.1\r\nHost: a\r\n\r\n"))(t)
			must.Get(known.Read(make([]byte, 1<<10)))(t)
			if _, held := all.sum(); held != 0 {
				t.Errorf("%s: a known connection holds %d bytes, want 0", what, held)
			}
			most := maxStrange / (row.cost << 10)
			conns := make([]net.Conn, most+most/2+2)
			for i := range conns {
				conns[i] = l.Dial()
				defer conns[i].Close()
				row.send(conns[i])
				if i%16 == 0 || i == len(conns)-1 {
					synctest.Wait()
				}
				if _, held := all.sum(); held > maxStrange || held < 0 {
					t.Fatalf("%s: %d bytes are held, want %d at most", what, held, maxStrange)
				}
			}
			open, _ := all.sum()
			if open > most || open < most/3 {
				t.Errorf("%s: %d are open, want %d at most", what, open, most)
			}
			if !isOpen(known) {
				t.Errorf("%s: the known one was closed", what)
			}
			for i, conn := range conns {
				if want := i >= len(conns)-open; !row.tls && isOpen(conn) != want {
					t.Fatalf("%s: %d of %d, of which %d remain: open is %v", what, i, len(conns), open, !want)
				}
			}
			for _, conn := range conns {
				_ = conn.Close()
			}
			synctest.Wait()
			if n, held := all.sum(); held != 0 || n != 0 {
				t.Errorf("%s: %d that were closed hold %d bytes", what, n, held)
			}
		})
	}
}

// unverified is a client of TLS that accepts any certificate, whatever the time.
func unverified(conn net.Conn) *tls.Conn {
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
}

// A writeOnly connection never gets an answer.
type writeOnly struct{ net.Conn }

func (writeOnly) Read([]byte) (int, error) { return 0, io.EOF }

// TestStrangersAnswered: a stranger whose requests are answered, such as a
// health check, holds no more after many than after a few.
func TestStrangersAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, all := nettest.NewPipes(), new(Strangers)
		serveMux(t, New(l, Config{Strangers: all}))
		conn := l.Dial()
		defer conn.Close()
		get(t, conn)
		get(t, conn)
		synctest.Wait()
		_, first := all.sum()
		for range 1000 {
			get(t, conn)
		}
		synctest.Wait()
		if _, held := all.sum(); held != first || first == 0 {
			t.Errorf("it holds %d bytes, and %d after two requests", held, first)
		}
	})
}

// TestManyLines: a header of very many fields is refused, known or not, and a
// pipeline is not.
func TestManyLines(t *testing.T) {
	s := serve(t, Config{})
	request := "GET /known HTTP/1.1\r\nHost: a\r\n\r\n"
	pipeline := strings.Repeat(request, 2*maxLines)
	if got := ask(t, s.dial(t), pipeline, 1<<20); strings.Count(got, "200 OK") != 2*maxLines {
		t.Errorf("a pipeline of %d: %d answers", 2*maxLines, strings.Count(got, "200 OK"))
	}
	for fields, want := range map[int]int{maxLines / 2: 2, 2 * maxLines: 1} {
		text := request + strings.TrimSuffix(request, "\r\n") + strings.Repeat("a:\n", fields) + "\r\n"
		if got := ask(t, s.dial(t), text, 1<<20); strings.Count(got, "200 OK") != want {
			t.Errorf("a second request of %d fields: %.1000q, want %d answers", fields, got, want)
		}
	}
}

// TestSilence: before its first byte, a connection may be silent for as long as
// it likes if its client need not authenticate or has done so, and until Hello
// otherwise. Once full, the oldest of those makes room, but no known one.
func TestSilence(t *testing.T) {
	cert, _ := nettest.Certificate(t)
	answer := func(is bool) func(*tls.ConnectionState) bool { return func(*tls.ConnectionState) bool { return is } }
	for what, row := range map[string]struct {
		tls           bool
		authenticates func(*tls.ConnectionState) bool
		want          bool
	}{
		"open":                  {false, nil, true},
		"a token":               {false, answer(true), false},
		"TLS, open":             {true, nil, true},
		"TLS, a token":          {true, answer(false), false},
		"TLS, by a certificate": {true, answer(true), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := nettest.NewPipes()
			c := Config{Authenticates: row.authenticates}
			if row.tls {
				c.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
			}
			serveMux(t, New(l, c))
			raw := l.Dial()
			defer raw.Close()
			conn := raw
			if row.tls {
				secure := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
				must.Do(t, secure.Handshake())
				conn = secure
				go func() { _, _ = io.Copy(io.Discard, raw) }()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if _, err := io.WriteString(conn, "PING"); (err == nil) != row.want {
				t.Errorf("%s: after an hour: %v, want it open: %v", what, err, row.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := nettest.NewPipes()
		serveMux(t, New(l, Config{MaxConns: 2}))
		known, silent := l.Dial(), l.Dial()
		defer known.Close()
		must.Get(fmt.Fprintf(known, "GET /known HTTP/1.1\r\nHost: a\r\n\r\n"))(t)
		for _, row := range []struct {
			after time.Duration
			open  bool
		}{{0, false}, {DefaultHello + time.Second, true}} {
			time.Sleep(row.after)
			next := l.Dial()
			defer next.Close()
			if r := get(t, next); (r.StatusCode == 200) != row.open || isOpen(silent) == row.open {
				t.Errorf("after %v: %s, want it inside: %v", row.after, r.Status, row.open)
			}
		}
		_, _ = known.Read(make([]byte, 1<<10))
		if !isOpen(known) {
			t.Error("the known one was closed")
		}
	})
}
