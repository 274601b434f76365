package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A respServer answers over RESP what a handler answers over HTTP.
type respServer struct {
	TestHandler
	handler http.Handler // the TestHandler, or around it

	mu     sync.Mutex
	answer func(answer string) string // changes an answer; nil means no change
	auth   string                     // the answer to AUTH
	tokens []string                   // received with AUTH
	conns  []net.Conn
}

// serve answers commands, one after the other. Meanwhile it keeps reading, like
// the buffers of a connection, which a pipe in memory does not have.
func (d *respServer) serve(conn net.Conn) {
	defer conn.Close()
	d.set(func() { d.conns = append(d.conns, conn) })
	r := bufio.NewReader(conn)
	came := make(chan []string, 1000)
	go func() {
		defer close(came)
		for {
			words, err := readCommand(r)
			if err != nil {
				return
			}
			came <- words
		}
	}()
	for words := range came {
		var said string
		switch words[0] {
		case "AUTH":
			d.set(func() {
				d.tokens = append(d.tokens, words[1])
				said = d.auth
			})
		case "PING":
			said = fmt.Sprintf("$%d\r\n%s\r\n", len(words[1]), words[1])
		default:
			said = d.command(words)
			d.set(func() {
				if d.answer != nil {
					said = d.answer(said)
				}
			})
		}
		if _, err := io.WriteString(conn, said); err != nil || said == "" {
			return
		}
	}
}

// readCommand reads a command in the form that this package sends.
func readCommand(r *bufio.Reader) (words []string, err error) {
	n, err := readNumber(r, '*', 10)
	for range n {
		word, err := readText(r, 1000)
		if err != nil {
			return nil, err
		}
		words = append(words, string(word))
	}
	return words, err
}

// command answers a command like an HTTP request.
func (d *respServer) command(words []string) string {
	target := "/v1/sequencers/" + words[1] + "/next?count=" + words[2]
	if words[0] == "NEXTR" {
		target += "&runs=true&format=hex"
	} else {
		target += "&format=raw"
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, httptest.NewRequest("POST", target, nil))
	switch {
	case w.Code != 200:
		var p struct{ Type, Detail string }
		_ = json.Unmarshal(w.Body.Bytes(), &p)
		return fmt.Sprintf("-ERR %s: %s\r\n", strings.TrimPrefix(p.Type, "urn:firn:problem:"), p.Detail)
	case words[0] == "NEXTB":
		return fmt.Sprintf("$%d\r\n%s\r\n", w.Body.Len(), w.Body)
	}
	var all struct {
		Runs []struct {
			First, Step string
			Count       int
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		panic(err)
	}
	var runs [][3]string
	for _, r := range all.Runs {
		runs = append(runs, [3]string{r.First, r.Step, strconv.Itoa(r.Count)})
	}
	return runsRESP(runs...)
}

// runsRESP returns an answer with runs of first, step and count.
func runsRESP(runs ...[3]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(runs))
	for _, r := range runs {
		fmt.Fprintf(&b, "*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:%s\r\n", len(r[0]), r[0], len(r[1]), r[1], r[2])
	}
	return b.String()
}

// cut closes all connections.
func (d *respServer) cut() {
	d.set(func() {
		for _, c := range d.conns {
			c.Close()
		}
		d.conns = nil
	})
}

// set uses the server under its lock.
func (d *respServer) set(use func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	use()
}

// newRESP returns a server that makes IDs.
func newRESP(t *testing.T, node uint64, layout string) *respServer {
	t.Helper()
	h := NewTestHandler(t, node, layout)
	return &respServer{TestHandler: h, handler: h, auth: "+OK\r\n"}
}

// resp starts a server at firn://host.
func (n *network) resp(t *testing.T, host string, node uint64, layout string) *respServer {
	t.Helper()
	d := newRESP(t, node, layout)
	n.serveRESP(t, host, d)
	return d
}

func (n *network) serveRESP(t *testing.T, host string, d *respServer) {
	l := n.listen(host)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(conn)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		d.Close()
		d.cut()
	})
}
