package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Requests that follow each other share a connection. One that was not used for
// long is closed.
func TestRESP(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		d := n.resp(t, "a", 1, "default")
		q := n.client(t, Config{Servers: []string{"firn://a"}}).Sequencer("orders")
		for range 20 {
			mustBatch(t, q, 100)
		}
		if n.dialled("a") != 1 {
			t.Errorf("%d connections, want 1", n.dialled("a"))
		}
		var all sync.WaitGroup
		d.Delay(time.Millisecond)
		for range maxIdleConns + 8 {
			all.Go(func() {
				if _, err := q.NextBatch(t.Context(), 1); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		p := q.client.set.servers[0].pool
		if len(p.idle) != maxIdleConns {
			t.Errorf("%d idle connections, want %d", len(p.idle), maxIdleConns)
		}
		time.Sleep(maxIdleTime + time.Second)
		dialled := n.dialled("a")
		mustBatch(t, q, 1)
		if got := n.dialled("a") - dialled; got != 1 || len(p.idle) != 1 {
			t.Errorf("after %v: %d new connections, and %d are idle, want 1", maxIdleTime, got, len(p.idle))
		}
	})
}

// Each token has connections of its own, which are authenticated once.
func TestTokenOfRESP(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		d := n.resp(t, "a", 1, "default")
		token := "one"
		q := n.client(t, Config{Servers: []string{"firn://a"}, TokenSource: func(context.Context) (string, error) { return token, nil }}).Sequencer("orders")
		for i, next := range []string{"one", "one", "two", "two", "", "one", "two"} {
			token = next
			mustBatch(t, q, 10)
			if want := min(1+i/2, 3); n.dialled("a") != want {
				t.Errorf("%d connections after token %q, want %d", n.dialled("a"), next, want)
			}
		}
		if !slices.Equal(d.tokens, []string{"one", "two"}) {
			t.Errorf("the tokens sent are %q, want each once", d.tokens)
		}
	})
	for auth, want := range map[string]string{ // followed by what NEXTR answers
		"-ERR Client sent AUTH, but no password is set\r\n": "",
		"-WRONGPASS invalid\r\n-NOAUTH required\r\n":        "401 unauthorized: invalid",
		"+OK\r\n-NOPERM no\r\n":                             "403 forbidden: no",
		":1\r\n":                                            "not an answer",
	} {
		inBubble(t, func(t *testing.T, n *network) {
			d := n.resp(t, "a", 1, "default")
			d.auth, _, _ = strings.Cut(auth, "-NO")
			d.answer = func(said string) string {
				if i := strings.Index(auth, "-NO"); i >= 0 {
					return auth[i:]
				}
				return said
			}
			_, err := n.client(t, Config{Servers: []string{"firn://a"}, Token: "x", Patience: -1}).Sequencer("orders").NextBatch(t.Context(), 1)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: %v, want %q", auth, err, want)
			}
		})
	}
}

// A server that refuses a token may accept it later: it has not read its token
// file yet, or a certificate was renewed, which only another handshake shows.
// So a refused connection is not used again, whether AUTH failed or a command,
// and every call sends the token anew.
func TestTokenAcceptedLater(t *testing.T) {
	for _, row := range []struct{ auth, refused string }{
		{"-WRONGPASS invalid\r\n", "-NOAUTH Authentication required.\r\n"},
		{"+OK\r\n", "-NOAUTH unauthorized: unknown client\r\n"},
		{"", "-NOAUTH unauthorized: its certificate has expired\r\n"}, // without a token
	} {
		auth, refused := row.auth, row.refused
		inBubble(t, func(t *testing.T, n *network) {
			d := n.resp(t, "a", 1, "default")
			c := Config{Servers: []string{"firn://a"}, Patience: -1}
			if auth != "" {
				c.Token = "x"
				d.auth = auth
			}
			d.answer = func(string) string { return refused }
			q := n.client(t, c).Sequencer("orders")
			const refusals = 3
			for i := range refusals {
				var said *Error
				_, err := q.NextBatch(t.Context(), 3)
				if !errors.As(err, &said) || said.Status != 401 || n.dialled("a") != i+1 {
					t.Errorf("AUTH %q, call %d: %v over %d connections, want a refusal, each over its own",
						auth, i, err, n.dialled("a"))
				}
				if p := q.client.set.servers[0].pool; len(p.idle) > 0 {
					t.Errorf("AUTH %q, call %d: a refused connection is kept", auth, i)
				}
				time.Sleep(time.Minute) // for the pause
			}
			d.set(func() { d.auth, d.answer = "+OK\r\n", nil })
			mustBatch(t, q, 3)
			mustBatch(t, q, 3)
			if got := n.dialled("a"); got != refusals+1 {
				t.Errorf("AUTH %q: %d connections, want %d: one that is not refused is kept", auth, got, refusals+1)
			}
			if want := refusals + 1; auth != "" && len(d.tokens) != want {
				t.Errorf("AUTH %q: the token was sent %d times, want %d", auth, len(d.tokens), want)
			}
		})
	}
}

// A connection that is cut after any byte of an answer fails no call, with
// another server, and no ID comes twice. If the server closes an idle
// connection, the next request uses another one.
func TestAnswerCutOverRESP(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		d := n.resp(t, "a", 1, "default")
		n.resp(t, "b", 2, "default")
		q := n.client(t, Config{Servers: []string{"firn://a", "firn://b"}}).Sequencer("orders")
		all := make(seen)
		var whole atomic.Bool
		for at := 0; !whole.Load(); at++ {
			var cut atomic.Bool
			d.set(func() {
				d.answer = func(said string) string {
					whole.Store(at >= len(said))
					cut.Store(true)
					if at >= len(said) {
						return said
					}
					conn := d.conns[len(d.conns)-1]
					time.AfterFunc(time.Millisecond, func() { conn.Close() })
					return said[:at]
				}
			})
			for !cut.Load() {
				b, err := q.NextBatch(t.Context(), 3)
				if err != nil || b.Len() != 3 {
					t.Errorf("cut after %d bytes: %d IDs, %v", at, b.Len(), err)
				}
				all.add(t, slices.Collect(b.All())...)
				time.Sleep(time.Minute) // for the pauses
			}
		}
		if len(all) < 100 {
			t.Errorf("%d IDs: this test has shown nothing", len(all))
		}
		d.set(func() { d.answer = nil })
	})
	inBubble(t, func(t *testing.T, n *network) {
		d := n.resp(t, "a", 1, "default")
		q := n.client(t, Config{Servers: []string{"firn://a"}}).Sequencer("orders")
		for i := range 5 {
			if _, err := q.NextBatch(t.Context(), 3); err != nil || n.dialled("a") != i+1 {
				t.Errorf("%v after %d connections", err, n.dialled("a"))
			}
			d.cut()
			synctest.Wait()
		}
		// Nor is an answer that no request asked for given to the next one.
		mustBatch(t, q, 3)
		stray := "$32\r\n" + strings.Repeat("0", 32) + "\r\n" + runsRESP([3]string{"0000000000000007", "1", "3"})
		d.set(func() { go io.WriteString(d.conns[0], stray) })
		synctest.Wait()
		b, err := q.NextBatch(t.Context(), 3)
		if err != nil || slices.Contains(slices.Collect(b.All()), 7) || n.dialled("a") != 7 {
			t.Errorf("%v, %v over %d connections, want the IDs of this request", slices.Collect(b.All()), err, n.dialled("a"))
		}
		if s := q.Stats(); s.Failures != 0 {
			t.Errorf("%+v, want no failures", s)
		}
	})
}

// Answers without valid IDs are errors, as over HTTP (see TestBadAnswers), and
// so are bytes that are not an answer, which also end the connection. Errors
// have a kind.
func TestAnswersOverRESP(t *testing.T) {
	const a, b = "0000000000000001", "0000000000000002"
	const framing = "not an answer to the request: use firn:// only"
	for answer, want := range map[string]string{
		runsRESP([3]string{a, "1", "3"}):                         "",
		runsRESP([3]string{a, "2", "2"}, [3]string{b, "1", "1"}): "",
		runsRESP([3]string{a, "1", "2"}):                         "2 IDs, not the 3",
		runsRESP([3]string{a, "1", "2"}, [3]string{b, "1", "1"}): "twice",
		runsRESP([3]string{"1", "1", "3"}):                       "16 hexadecimal digits",
		runsRESP([3]string{a, "+1", "3"}):                        `parsing "+1"`,
		"+OK\r\n":                                                framing,
		":3\r\n":                                                 framing,
		"$24\r\n" + strings.Repeat("x", 24) + "\r\n":             framing,
		"*4\r\n":                            framing,
		"*-1\r\n":                           framing,
		"*1\r\n*2\r\n":                      framing,
		"*1\r\n*3\r\n:1\r\n":                framing,
		"*1\r\n*3\r\n$16\r\n" + a + "xx":    framing,
		"*1\r\n*3\r\n$65\r\n":               framing,
		"*1\n":                              framing,
		"HTTP/1.1 400 Bad Request\r\n\r\n":  framing,
		"-TRYAGAIN busy: no ID is free\r\n": `503 busy: no ID is free retry 0s`,
		"-TRYAGAIN busy: no ID; retry after 7 s\r\n":                        `503 busy: no ID retry 7s`,
		"-UNAVAILABLE clock: a \x1b[2J; retry after x s\r\n":                "503 clock: a \ufffd[2J; retry after x s retry 0s",
		"-UNAVAILABLE of-tomorrow: what; retry after 2 s\r\n":               "503 service unavailable: of-tomorrow: what retry 2s",
		"-ERR detached: it is detached\r\n":                                 "409 detached: it is detached retry 0s",
		"-ERR max number of clients reached\r\n":                            "500 internal server error: max number of clients reached retry 0s",
		"-NOPERM\r\n":                                                       "403 forbidden retry 0s",
		"-NOAUTH Authentication required.\r\n":                              "401 unauthorized: Authentication required. retry 0s",
		"-ERR " + strings.Repeat("x", 20<<10) + "\r\n":                      "buffer full",
		runsRESP([3]string{a, "1", "3"}) + ":unasked\r\n":                   "",
		runsRESP([3]string{a, "1", "3"}) + runsRESP([3]string{b, "1", "3"}): "",
	} {
		inBubble(t, func(t *testing.T, n *network) {
			d := n.resp(t, "a", 1, "default")
			q := n.client(t, Config{Servers: []string{"firn://a"}, Patience: -1}).Sequencer("orders")
			d.answer = func(string) string { return answer }
			got, err := q.NextBatch(t.Context(), 3)
			text := ""
			if err != nil {
				text = err.Error()
				if said, ok := errors.AsType[*Error](err); ok {
					text += fmt.Sprintf(" retry %v", said.RetryAfter)
				}
			}
			if want == "" && (err != nil || got.Len() != 3) || !strings.Contains(text, want) || err != nil && got.Len() != 0 {
				t.Errorf("%q: %d IDs, %s, want %q", answer, got.Len(), text, want)
			}
			d.set(func() { d.answer = nil })
			time.Sleep(time.Minute)
			if b, err := q.NextBatch(t.Context(), 3); err != nil || b.Len() != 3 || slices.Contains(slices.Collect(b.All()), 2) {
				t.Errorf("after %q: %v", answer, err)
			}
		})
	}
}

// TestNoTLS: a server that does not speak TLS is an error, and its connection
// is closed.
func TestNoTLS(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		n.resp(t, "a", 1, "default")
		q := n.client(t, Config{Servers: []string{"firns://a"}, Patience: -1}).Sequencer("orders")
		for range 2 {
			if id, err := q.Next(t.Context()); err == nil {
				t.Errorf("ID %v, want an error", id)
			}
		}
	})
}
