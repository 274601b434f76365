//go:build linux || darwin

package server_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/server"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A cutConn ends in a chosen way after a number of bytes was written.
type cutConn struct {
	*memConn
	left  int
	end   func(*memConn)
	wrote int
}

var errCut = errors.New("the connection was cut")

func (c *cutConn) Write(b []byte) (int, error) {
	if c.left >= len(b) {
		c.left -= len(b)
		n, err := c.memConn.Write(b)
		c.wrote += n
		return n, err
	}
	n, _ := c.memConn.Write(b[:c.left])
	c.left = 0
	c.wrote += n
	c.end(c.memConn)
	return n, errCut
}

// TestCutInsideTLS: a connection that ends anywhere in its handshake, or in
// what is sent after it, leaves nothing behind, for each protocol that may be
// negotiated.
func TestCutInsideTLS(t *testing.T) {
	dir := t.TempDir()
	all := recordings(t)
	cuts := 0
	synctest.Test(t, func(t *testing.T) {
		toDay()
		config := nettest.Certificates(t, dir)
		certificates := &server.TLS{Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"), ClientCA: filepath.Join(dir, "ca.crt")}
		over := func(conn net.Conn, protocol string) *tls.Conn {
			c := config.Clone()
			switch protocol {
			case "grpc":
				c.NextProtos = []string{"h2"}
			case "resp":
			default:
				c.NextProtos = []string{"h2", "http/1.1"}
			}
			return tls.Client(conn, c)
		}
		inStack(t, certificates, all, func(conn *memConn, protocol string) net.Conn { return over(conn, protocol) }, func(t *testing.T, dial func(int) *memConn, clean func(string)) {
			for protocol, session := range all {
				// Hellos and signatures differ in length by a few bytes.
				for left, more := 0, true; more; left += 37 * step() {
					for how, end := range map[string]func(*memConn){
						"closed":          func(c *memConn) { _ = c.Close() },
						"reset":           func(c *memConn) { _ = c.Reset() },
						"half-closed":     func(c *memConn) { _ = c.CloseWrite() },
						"reset when read": func(c *memConn) { synctest.Wait(); _ = c.Reset() },
					} {
						raw := &cutConn{memConn: dial(1 << 20), left: left, end: end}
						conn := over(raw, protocol)
						// In two records.
						_, err := io.WriteString(conn, session[:len(session)/2])
						if err == nil {
							_, err = io.WriteString(conn, session[len(session)/2:])
						}
						more = errors.Is(err, errCut)
						_ = raw.SetReadDeadline(time.Now().Add(2 * slowRequest))
						_, _ = io.Copy(io.Discard, conn)
						_ = raw.memConn.Close()
						time.Sleep(lingering)
						clean(fmt.Sprintf("%s, %d bytes, %s", protocol, left, how))
						cuts++
					}
				}
			}
		})
	})
	t.Logf("report: connections cut inside TLS: %d, in the handshake and after it: no goroutine is left", cuts)
}
