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
	"time"

	"github.com/firnid/firn/client/clienttest"
)

// A direct is a server that switches to RESP, over which it returns the answers
// of its Handler.
type direct struct {
	*clienttest.Handler

	mu       sync.Mutex
	switches int
	commands int
	refuse   bool                       // refuses to switch
	quiet    bool                       // no answer offers RESP
	answer   func(answer string) string // changes an answer over RESP; nil means no change
	auth     string                     // the answer to AUTH
	tokens   []string                   // received with AUTH
	conns    []net.Conn
}

func (d *direct) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.URL.Path != "/v1/resp" {
		if r.Header.Get("Firn-Nonce") != "" && !d.quiet {
			w.Header().Set("Connection", "Firn-Upgrade")
			w.Header().Set("Firn-Upgrade", "firn-resp")
		}
		d.mu.Unlock()
		defer d.mu.Lock()
		d.Handler.ServeHTTP(w, r)
		return
	}
	d.switches++
	if d.refuse || r.Header.Get("Upgrade") != "firn-resp" || r.Header.Get("Connection") != "Upgrade" || r.Header.Get("Firn-Peer") == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: firn-resp\r\n\r\n")
	d.conns = append(d.conns, conn)
	go d.serve(conn, rw.Reader)
}

// serve answers commands, one after the other. Meanwhile it keeps reading, like
// the buffers of a connection, which a pipe in memory does not have.
func (d *direct) serve(conn net.Conn, r *bufio.Reader) {
	defer conn.Close()
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
		if words[0] == "AUTH" {
			d.mu.Lock()
			d.tokens = append(d.tokens, words[1])
			said = d.auth
			d.mu.Unlock()
		} else {
			said = d.command(words)
			d.mu.Lock()
			d.commands++
			if d.answer != nil {
				said = d.answer(said)
			}
			d.mu.Unlock()
		}
		if _, err := io.WriteString(conn, said); err != nil || said == "" {
			return
		}
	}
}

// readCommand reads a command in the form that this package sends.
func readCommand(r *bufio.Reader) (words []string, err error) {
	_, n, err := readHead(r)
	for range n {
		var word string
		if word, err = readText(r); err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return words, err
}

// command answers a command like an HTTP request.
func (d *direct) command(words []string) string {
	target := "/v1/sequencers/" + words[1] + "/next?count=" + words[2]
	if words[0] == "NEXTR" {
		target += "&runs=true&format=hex"
	} else {
		target += "&format=raw"
	}
	w := httptest.NewRecorder()
	d.Handler.ServeHTTP(w, httptest.NewRequest("POST", target, nil))
	switch {
	case w.Code != 200:
		return "-ERR busy: not now\r\n"
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

// counts returns the numbers of switches and commands.
func (d *direct) counts() (switches, commands int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.switches, d.commands
}

// cut closes all RESP connections.
func (d *direct) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		c.Close()
	}
	d.conns = nil
}

// set changes the server under its lock.
func (d *direct) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// direct starts a server that switches to RESP, at http://host.
func (n *network) direct(t *testing.T, host string, node uint64, layout string) *direct {
	t.Helper()
	d := &direct{Handler: n.node(t, host, node, layout), auth: "+OK\r\n"}
	n.serve(host, d)
	return d
}

// directClient makes a client of this network that may speak RESP, and closes
// it at the end of the test.
func (n *network) directClient(t *testing.T, c Config) *Client {
	t.Helper()
	client := newClient(t, c)
	client.idle[0].(*http.Transport).DialContext = n.dial
	for _, s := range client.roster.servers {
		if s.link == nil {
			t.Fatalf("%s may not speak RESP", s.name)
		}
		s.link.dial = n.dial
	}
	return client
}

// switched makes one request, so that the next one uses RESP.
func switched(t *testing.T, q *Sequencer) {
	t.Helper()
	if _, err := q.NextBatch(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	for _, s := range q.client.roster.servers {
		if s.link.get(q.client.config.Token) == nil {
			t.Fatalf("%s: there is no RESP", s.name)
		}
	}
}
