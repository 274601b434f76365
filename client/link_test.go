package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
)

// The first request uses HTTP, and the others of all callers one RESP
// connection, with every layout of any width, in runs or packed.
func TestSpeaksRESP(t *testing.T) {
	for _, layout := range []string{"default", "hazelcast", "lable", "twitter", "bits=seq:6.time:40,epoch=2026-01-01T00:00:00Z", "bits=time:34.rand:12.node:4.seq:10,unit=1s"} {
		inBubble(t, func(t *testing.T, n *network) {
			d := n.direct(t, "a", 1, layout)
			q := n.directClient(t, Config{Servers: []string{"http://a"}}).Sequencer("orders")
			switched(t, q)
			before := d.Requests()
			var mu sync.Mutex
			var got []firn.ID
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					b, err := q.NextBatch(t.Context(), 100)
					if err != nil || b.Len() != 100 {
						t.Errorf("%s: NextBatch(100) = %d IDs, %v", layout, b.Len(), err)
					}
					mu.Lock()
					defer mu.Unlock()
					got = slices.AppendSeq(got, b.All())
				})
			}
			all.Wait()
			slices.Sort(got)
			if len(slices.Compact(got)) != 2000 {
				t.Errorf("%s: %d IDs, want 2000", layout, len(got))
			}
			switches, commands := d.counts()
			if switches != 1 || commands != d.Requests()-before || commands < 20 || n.dialled("a") != 2 {
				t.Errorf("%s: %d switches, %d commands of %d requests over %d connections, want 1, all but the first, 2", layout, switches, commands, d.Requests()-before, n.dialled("a"))
			}
			if _, err := q.client.Sequencer128("orders").NextBatch(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "use the Client's method Sequencer") {
				t.Errorf("%s: Sequencer128: %v", layout, err)
			}
		})
	}
	inBubble(t, func(t *testing.T, n *network) {
		d := n.direct(t, "a", 1, "uuidv7")
		c := n.directClient(t, Config{Servers: []string{"http://a"}})
		for range 5 {
			if b, err := c.Sequencer128("orders").NextBatch(t.Context(), 50); err != nil || b.Len() != 50 {
				t.Errorf("uuidv7: %d IDs, %v", b.Len(), err)
			}
			time.Sleep(time.Second)
		}
		if _, commands := d.counts(); commands != 4 {
			t.Errorf("uuidv7: %d commands, want 4", commands)
		}
	})
}

// RESP is not used if there may be a proxy, or if the server does not offer it
// or refuses.
func TestStaysWithHTTP(t *testing.T) {
	one := func(server string, c Config) *link {
		c.Servers = []string{server}
		return newClient(t, c).roster.servers[0].link
	}
	t.Setenv("HTTP_PROXY", "")
	for server, want := range map[string]bool{"http://a:1": true, "http://a:1/": true, "https://a": true, "http://a/path": false, "unix:/run/firn": false} {
		if got := one(server, Config{}) != nil; got != want {
			t.Errorf("%s may speak RESP: %t, want %t", server, got, want)
		}
	}
	if one("http://a", Config{HTTPClient: new(http.Client)}) != nil {
		t.Error("RESP goes past an HTTPClient")
	}
	for name, set := range map[string]func(*direct){
		"not offered": func(d *direct) { d.quiet = true },
		"refused":     func(d *direct) { d.refuse = true },
		"bad token":   func(d *direct) { d.auth = "-WRONGPASS no\r\n" },
	} {
		inBubble(t, func(t *testing.T, n *network) {
			d := n.direct(t, "a", 1, "default")
			set(d)
			q := n.directClient(t, Config{Servers: []string{"http://a"}, Token: "secret"}).Sequencer("orders")
			for range 600 { // ten minutes
				if _, err := q.NextBatch(t.Context(), 10); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			switches, commands := d.counts()
			if commands != 0 || switches > 1 {
				t.Errorf("%s: %d switches in ten minutes and %d commands, want at most 1 and 0", name, switches, commands)
			}
			if s := q.Stats(); s.Failures != 0 {
				t.Errorf("%s: %+v", name, s)
			}
			d.set(func() { d.quiet, d.refuse, d.auth = false, false, "-ERR Client sent AUTH, but no password is set\r\n" })
			time.Sleep(10 * time.Minute)
			switched(t, q)
		})
	}
}

// A RESP connection has one token; a request with another token uses HTTP or
// its own connection.
func TestTokenOfRESP(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		d := n.direct(t, "a", 1, "default")
		token := "one"
		q := n.directClient(t, Config{Servers: []string{"http://a"}, TokenSource: func(context.Context) (string, error) { return token, nil }}).Sequencer("orders")
		for i := range 6 {
			if i == 3 {
				token = "two"
			}
			if _, err := q.NextBatch(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if _, commands := d.counts(); commands != 4 || !slices.Equal(d.tokens, []string{"one", "two"}) {
			t.Errorf("%d commands with the tokens %q, want 4, and each once", commands, d.tokens)
		}
		// Alternating tokens do not open a connection for each request.
		for i := range 1000 {
			token = []string{"one", "two"}[i%2]
			if _, err := q.NextBatch(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if switches, _ := d.counts(); switches > 2+5 {
			t.Errorf("%d switches in a second, want at most 7", switches)
		}
	})
}

// A connection that is cut after any byte of an answer fails no call: the call
// gets other IDs over HTTP, and none comes twice. On a connection that was used
// a moment ago, the call itself reads its answer.
func TestAnswerCutOverRESP(t *testing.T) {
	for _, test := range []struct {
		layout string
		own    bool
	}{{"default", false}, {"default", true}, {"bits=time:34.rand:12.node:4.seq:10,unit=1s", true}} {
		layout := test.layout
		inBubble(t, func(t *testing.T, n *network) {
			d := n.direct(t, "a", 1, layout)
			q := n.directClient(t, Config{Servers: []string{"http://a"}}).Sequencer("orders")
			seen := make(map[firn.ID]bool)
			take := func(what string) {
				b, err := q.NextBatch(t.Context(), 3)
				if err != nil || b.Len() != 3 {
					t.Errorf("%s: %d IDs, %v", what, b.Len(), err)
				}
				for id := range b.All() {
					if seen[id] {
						t.Fatalf("%s: %v comes twice", what, id)
					}
					seen[id] = true
				}
			}
			take("first")
			time.Sleep(time.Second)
			cuts := 0
			for at := 0; ; at++ {
				whole := false
				what := fmt.Sprintf("cut after %d bytes", at)
				if test.own {
					take(what)
				}
				d.set(func() {
					d.answer = func(said string) string {
						if whole = at >= len(said); whole {
							return said
						}
						time.AfterFunc(time.Millisecond, d.cut)
						return said[:at]
					}
				})
				take(what)
				take(what)
				d.set(func() { d.answer = nil })
				time.Sleep(time.Second)
				take(what)
				time.Sleep(time.Second)
				if whole {
					break
				}
				cuts++
			}
			if _, commands := d.counts(); cuts < 20 || commands < cuts {
				t.Errorf("%d cuts and %d commands: this test has shown nothing", cuts, commands)
			}
			if s := q.Stats(); s.Failures != 0 || q.client.Servers()[0].Failures != 0 {
				t.Errorf("%+v, want no failures", s)
			}
		})
	}
}

// Answers without valid IDs are errors, as over HTTP. Bytes that are not an
// answer end the connection, and HTTP is used.
func TestGarbageOverRESP(t *testing.T) {
	const a, b = "0000000000000001", "0000000000000002"
	for answer, want := range map[string]string{
		runsRESP([3]string{a, "1", "3"}):                         "",
		runsRESP([3]string{a, "2", "2"}, [3]string{b, "1", "1"}): "",
		runsRESP([3]string{a, "1", "2"}):                         "2 IDs, not the 3",
		runsRESP([3]string{a, "1", "4"}):                         "more IDs than the 3",
		runsRESP():                                               "0 IDs, not the 3",
		runsRESP([3]string{"0000000000000000", "1", "3"}):        "ID 0",
		runsRESP([3]string{a, "0", "3"}):                         "step of 0",
		runsRESP([3]string{a, "1", "0"}):                         "run has 0 IDs",
		runsRESP([3]string{a, "1", "2"}, [3]string{b, "1", "1"}): "twice",
		runsRESP([3]string{"fffffffffffffffe", "1", "3"}):        "greatest ID",
		runsRESP([3]string{strings.Repeat("0", 32), "1", "3"}):   "Sequencer128",
		runsRESP([3]string{"1", "1", "3"}):                       "16 hexadecimal digits",
		runsRESP([3]string{"000000000000000A", "1", "3"}):        "hexadecimal digits",
		runsRESP([3]string{a, "+1", "3"}):                        "step of a run",
		runsRESP([3]string{a, "1", "03"}):                        "count of a run",
		runsRESP([3]string{a, "1", "3"}, [3]string{b, "1", "0"}): "0 IDs",
		"+OK\r\n": "elsewhere",
		":3\r\n":  "elsewhere",
		"$24\r\n" + strings.Repeat("x", 24) + "\r\n": "elsewhere",
		"*4\r\n":                            "elsewhere",
		"*-1\r\n":                           "elsewhere",
		"*1\r\n*2\r\n":                      "elsewhere",
		"*1\r\n*3\r\n:1\r\n":                "elsewhere",
		"*1\r\n*3\r\n$16\r\n" + a + "xx":    "elsewhere",
		"*1\r\n*3\r\n$65\r\n":               "elsewhere",
		"*1\n":                              "elsewhere",
		"HTTP/1.1 400 Bad Request\r\n\r\n":  "elsewhere",
		"-TRYAGAIN busy: no ID is free\r\n": "elsewhere",
		"-NOPERM\r\n":                       "elsewhere",
		"-ERR " + strings.Repeat("x", 20<<10) + "\r\n":    "elsewhere",
		runsRESP([3]string{a, "1", "3"}) + ":unasked\r\n": "",
	} {
		inBubble(t, func(t *testing.T, n *network) {
			d := n.direct(t, "a", 1, "default")
			q := n.directClient(t, Config{Servers: []string{"http://a"}, Patience: -1}).Sequencer("orders")
			switched(t, q)
			before := d.Requests()
			d.set(func() { d.answer = func(string) string { return answer } })
			got, err := q.NextBatch(t.Context(), 3)
			_, commands := d.counts()
			overHTTP := d.Requests()-before-commands > 0
			var wrong *AnswerError
			switch {
			case overHTTP != (want == "elsewhere"):
				t.Errorf("%q: HTTP was asked: %t", answer, overHTTP)
			case want == "" || overHTTP:
				if err != nil || got.Len() != 3 {
					t.Errorf("%q: %d IDs, %v", answer, got.Len(), err)
				}
			case !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || got.Len() != 0:
				t.Errorf("%q: %d IDs, %v, want an AnswerError with %q", answer, got.Len(), err, want)
			}
			d.set(func() { d.answer = nil })
			time.Sleep(time.Minute)
			if b, err := q.NextBatch(t.Context(), 3); err != nil || b.Len() != 3 {
				t.Errorf("after %q: %v", answer, err)
			}
		})
	}
}

// The answer of a caller that gives up is discarded, and all others get theirs.
func TestCancelledOverRESP(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		d := n.direct(t, "a", 1, "default")
		q := n.directClient(t, Config{Servers: []string{"http://a"}}).Sequencer("orders")
		switched(t, q)
		_, before := d.counts()
		d.Delay(100 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		seen := make(map[firn.ID]bool)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if i == 1 {
					if _, err := q.NextBatch(ctx, 5); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `client: "orders"`) {
						t.Errorf("NextBatch() = %v, want Canceled", err)
					}
					return
				}
				b, err := q.NextBatch(t.Context(), 5)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for id := range b.All() {
					seen[id] = true
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		cancel()
		all.Wait()
		if switches, commands := d.counts(); len(seen) != 10 || switches != 1 || commands != before+3 || q.client.Servers()[0].Failures != 0 {
			t.Errorf("%d IDs after %d switches and %d commands", len(seen), switches, commands-before)
		}
	})
}

// A call that reads its own answer may give up. Before the answer begins, that
// costs only this call; in the middle of it, the connection too.
func TestCancelledReaderOverRESP(t *testing.T) {
	for _, arrived := range []int{0, 1, 30} {
		inBubble(t, func(t *testing.T, n *network) {
			d := n.direct(t, "a", 1, "default")
			q := n.directClient(t, Config{Servers: []string{"http://a"}}).Sequencer("orders")
			switched(t, q)
			if _, err := q.NextBatch(t.Context(), 5); err != nil { // from now on, no goroutine reads
				t.Fatal(err)
			}
			pipe := q.client.roster.servers[0].link.get("")
			d.set(func() {
				d.answer = func(said string) string {
					d.answer = nil
					conn := d.conns[0]
					d.mu.Unlock()
					_, _ = conn.Write([]byte(said[:arrived]))
					time.Sleep(20 * time.Millisecond)
					d.mu.Lock()
					return said[arrived:]
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			start := time.Now()
			if _, err := q.NextBatch(ctx, 5); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Millisecond {
				t.Errorf("%d bytes: %v after %v, want DeadlineExceeded after 10 ms", arrived, err, time.Since(start))
			}
			pipe.mu.Lock()
			ended := pipe.err != nil
			pipe.mu.Unlock()
			if ended != (arrived > 0 && seesUnread) {
				t.Errorf("%d bytes: the connection has ended: %t", arrived, ended)
			}
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if b, err := q.NextBatch(t.Context(), 5); err != nil || b.Len() != 5 {
						t.Errorf("%d bytes: %d IDs, %v", arrived, b.Len(), err)
					}
				})
			}
			all.Wait()
			time.Sleep(time.Second)
		})
	}
}

// A context that ends while the answer arrives harms no later request: no
// deadline is left behind, and no turn to read is lost.
func TestCancelledAtTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		d := n.direct(t, "a", 1, "default")
		q := n.directClient(t, Config{Servers: []string{"http://a"}}).Sequencer("orders")
		switched(t, q)
		pipe := q.client.roster.servers[0].link.get("")
		d.Delay(time.Millisecond)
		seen := make(map[firn.ID]bool)
		_, before := d.counts()
		for i := range 1000 {
			wait := time.Millisecond
			switch i % 10 {
			case 0:
				wait--
			case 1:
				wait++
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			b, err := q.NextBatch(ctx, 2)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			for id := range b.All() {
				if seen[id] {
					t.Fatalf("%v comes twice", id)
				}
				seen[id] = true
			}
			synctest.Wait() // the answer has been read, and the function of the context has run
		}
		if _, commands := d.counts(); commands != before+1000 || pipe.hasEnded() {
			t.Errorf("%d commands over one connection, which has ended: %t; want 1000", commands-before, pipe.hasEnded())
		}
		if answers := len(seen) / 2; answers < 100 || answers > 900 {
			t.Errorf("%d of 1000 calls got an answer, want at least those with time, and not those without", answers)
		}
	})
}

// A connection that its server closes is dropped although no call reads. So is
// one on which more arrives than was asked for.
func TestUnusedOverRESP(t *testing.T) {
	for _, unasked := range []string{"", runsRESP([3]string{"0000000000000001", "1", "1"})} {
		inBubble(t, func(t *testing.T, n *network) {
			d := n.direct(t, "a", 1, "default")
			q := n.directClient(t, Config{Servers: []string{"http://a"}}).Sequencer("orders")
			switched(t, q)
			if _, err := q.NextBatch(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if unasked == "" {
				d.cut()
			} else {
				go io.WriteString(d.conns[0], unasked)
			}
			time.Sleep(2 * tick)
			if q.client.roster.servers[0].link.get("") != nil {
				t.Errorf("the connection is still in use after %q", unasked)
			}
		})
	}
}

// A request that waits for its IDs delays no other sequencer, and one without
// an answer in time ends the connection.
func TestStuckOverRESP(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		d := n.direct(t, "a", 1, "default")
		c := n.directClient(t, Config{Servers: []string{"http://a"}, Patience: -1})
		switched(t, c.Sequencer("orders"))
		hang := make(chan struct{})
		first := true
		d.set(func() {
			d.answer = func(said string) string {
				if first {
					first = false
					d.mu.Unlock()
					<-hang
					d.mu.Lock()
				}
				return said
			}
		})
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := c.Sequencer("slow").NextBatch(t.Context(), 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
				t.Errorf("the slow one: %v after %v, want DeadlineExceeded after 5 s", err, time.Since(start))
			}
		})
		synctest.Wait()
		for i := range 3 {
			begin := time.Now()
			if _, err := c.Sequencer("orders").NextBatch(t.Context(), 1); err != nil || i == 0 != (time.Since(begin) > 0) || time.Since(begin) > 2*stuckAfter {
				t.Errorf("call %d behind it: %v after %v", i, err, time.Since(begin))
			}
		}
		all.Wait()
		time.Sleep(time.Second)
		close(hang)
		time.Sleep(time.Minute)
		switched(t, c.Sequencer("orders"))
		if switches, _ := d.counts(); switches != 2 {
			t.Errorf("%d switches, want 2", switches)
		}
	})
}

// If a server ends, another one takes over without a failure for callers. The
// connection of an unused server is closed.
func TestRESPEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		a, b := n.direct(t, "a", 1, "default"), n.direct(t, "b", 2, "default")
		q := n.directClient(t, Config{Servers: []string{"http://a", "http://b"}}).Sequencer("orders")
		for range 100 {
			if _, err := q.NextBatch(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		n.mu.Lock()
		n.hosts["b"] = nil
		n.mu.Unlock()
		for _, s := range n.servers {
			if s.Handler == http.Handler(b) {
				s.Close()
			}
		}
		b.cut()
		for range 100 {
			if _, err := q.NextBatch(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if s := q.client.Servers(); s[0].Failures != 0 || s[1].Failures == 0 {
			t.Errorf("%+v, want failures of the second", s)
		}
		time.Sleep(2 * idleAfter)
		if p := q.client.roster.servers[0].link.get(""); p != nil {
			t.Error("an unused connection stays open")
		}
		if _, err := q.NextBatch(t.Context(), 10); err != nil {
			t.Error(err)
		}
		if _, commands := a.counts(); commands < 100 {
			t.Errorf("%d commands", commands)
		}
	})
}

// TestLeaksOfRESP: after Close no goroutine is left, whatever the connection
// did.
func TestLeaksOfRESP(t *testing.T) {
	for range 3 {
		inBubble(t, func(t *testing.T, n *network) {
			d := n.direct(t, "a", 1, "default")
			c := n.directClient(t, Config{Servers: []string{"http://a"}})
			switched(t, c.Sequencer("orders"))
			d.Delay(time.Hour)
			defer d.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := c.Sequencer("orders").NextBatch(ctx, 1); err == nil {
				t.Error("there was an answer")
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if l := c.roster.servers[0].link; l.get("") != nil {
				t.Error("a connection is left")
			}
			if _, err := c.Sequencer("orders").NextBatch(t.Context(), 1); err != ErrClosed {
				t.Errorf("after Close: %v", err)
			}
		}) // it fails if a goroutine is left
	}
}
