package respapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// session has every kind of command, with a protocol error at its end.
var session = line("HELLO 3") + line("CLIENT SETINFO LIB-NAME x") + line("NEXT orders") + strings.Repeat(line("NEXT orders"), 5) +
	line("NEXT orders 3") + "NEXT orders\r\nNEXT orders\r\n\r\n*0\r\n" + line("NEXTB orders 2") + line("INCR orders") +
	"ECHO a\r\n" + cmd("ECHO", "\r\n$1\r\n") + line("NEXT a/b") + line("GET x") + line("COMMAND COUNT") +
	line("INSPECT 5 default") + line("MULTI") + line("INCR a") + line("EXEC") + line("INCRBY a 1") + line("RESET") + line("PING") + "*1\r\n$-1\r\n" + line("PING")

// TestOneWrite: all commands that arrive together are answered with one write.
func TestOneWrite(t *testing.T) {
	for _, in := range []string{
		strings.Repeat(line("NEXT orders"), 100),
		strings.Repeat(line("NEXT orders")+line("PING")+line("NEXT users 3")+"INCR x\r\n", 20),
		session,
	} {
		c := &scriptedConn{in: strings.NewReader(in)}
		NewServer(Config{Front: service.Front{Backend: counting()}}).serveConn(c)
		if len(c.writes) != 1 {
			t.Errorf("%d writes for %d bytes of commands, want 1", len(c.writes), len(in))
		}
	}
}

// TestLongAnswers: answers of any length are sent in pieces.
func TestLongAnswers(t *testing.T) {
	in := strings.Repeat(line("NEXT orders 100000"), 20) + line("NEXTB orders 100000") + line("PING")
	c := &scriptedConn{in: strings.NewReader(in)}
	NewServer(Config{Front: service.Front{Backend: counting()}}).serveConn(c)
	most := 0
	for _, w := range c.writes {
		most = max(most, len(w))
	}
	if most > flushAt+4096 {
		t.Errorf("a write of %d bytes", most)
	}
	all := values(t, string(bytes.Join(c.writes, nil)))
	if len(all) != 22 || len(all[19].items) != 100000 || len(all[20].text) != 800000 || all[21].text != "PONG" {
		t.Fatalf("%d answers", len(all))
	}
	for i, v := range all[19].items {
		if want := fmt.Sprint(1900001 + i); v.text != want {
			t.Fatalf("ID %d is %s, want %s", i, v.text, want)
		}
	}
}

// TestMemory: a connection uses a bounded amount of memory, whatever it
// receives.
func TestMemory(t *testing.T) {
	for name, in := range map[string]io.Reader{
		"junk":     io.LimitReader(endless("x"), 100<<20),
		"spaces":   io.LimitReader(endless(" "), 100<<20),
		"lines":    io.LimitReader(endless("\n"), 10<<20),
		"bulk":     io.MultiReader(strings.NewReader("*64\r\n"), io.LimitReader(endless("$60000\r\n"+strings.Repeat("x", 60000)+"\r\n"), 100<<20)),
		"huge":     io.MultiReader(strings.NewReader("*1\r\n$1073741824\r\n"), io.LimitReader(endless("x"), 100<<20)),
		"commands": io.LimitReader(endless(line("NEXT orders")), 10<<20),
		"echoes":   io.LimitReader(endless(cmd("ECHO", strings.Repeat("x", 64<<10))), 20<<20),
		"unknown":  io.LimitReader(endless(cmd(strings.Repeat("x", 60<<10), strings.Repeat("y", 60<<10))), 20<<20),
		"COMMAND":  io.LimitReader(endless("COMMAND\n"), 1<<20),
	} {
		nc := &discardConn{scriptedConn: scriptedConn{in: in}}
		c := &conn{server: NewServer(Config{Front: service.Front{Backend: counting()}}), nc: nc, creds: new(auth.Credentials)}
		c.serve()
		if len(c.buf) > 256<<10 || cap(c.out) > 512<<10 {
			t.Errorf("%s: %d bytes to read, %d to write", name, len(c.buf), cap(c.out))
		}
	}
}

// An endlessReader repeats a text forever.
type endlessReader struct {
	text string
	at   int
}

func endless(text string) io.Reader { return &endlessReader{text: text} }

func (r *endlessReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(b), nil
}

// TestOtherProtocols: a first line that is no command ends the connection,
// because the next ones may be commands. Clients that try unknown commands send
// arrays, and continue; so does a person whose command before has succeeded.
func TestOtherProtocols(t *testing.T) {
	for _, test := range []struct {
		in   string
		want int // answers before the end; errors, then an ID, if it continues
		ends bool
	}{
		{"EHLO mail.example\r\nMAIL FROM:<a@example>\r\nNEXT a\r\n", 1, true},
		{"set a 0 0 5\r\nNEXT a\r\n", 1, true},
		{"\r\n\r\nUSER a\nNEXT a\n", 1, true},
		{"NICK a\r\n" + line("NEXT a"), 1, true},
		{"\x80\xff\r\nNEXT a\r\n", 1, true},
		{"AUTH PLAIN\r\nSTAT\r\nNEXT a\r\n", 2, true},
		{"RESET\r\nSTAT\r\nNEXT a\r\n", 2, true},
		{"incr a 1\r\nset a 0 0 6\r\nNEXT a\r\n", 2, true},
		{line("SENTINEL masters") + "HELP\r\nNEXT a\r\n", 2, true},
		{line("SENTINEL masters") + line("CONFIG GET save") + line("NEXT a"), 2, false},
		{"PING\r\nHELP\r\nNEXT a\r\n", 1, false},
		{line("PING") + "HELP\r\nNEXT a\r\n", 1, false},
		{"NEXT\r\nNEXT a\r\n", 1, false},
	} {
		for _, guarded := range []bool{false, true} {
			c := Config{Front: service.Front{Backend: counting()}}
			if guarded {
				c.Front.Auth = guard{}
			}
			got := talk(NewServer(c), test.in)
			if test.ends && strings.Count(got, "\r\n") != test.want || !guarded && !test.ends && (strings.Count(got, "-ERR ") != test.want || !strings.HasSuffix(got, "$1\r\n1\r\n")) {
				t.Errorf("%q, guarded %t = %q, want %d, and the end after the last: %t", test.in, guarded, got, test.want, test.ends)
			}
		}
	}
}

// TestRefusalArrives: the answer to invalid input arrives, even if much unread
// input follows.
func TestRefusalArrives(t *testing.T) {
	addr := serveTCP(t, NewServer(Config{Front: service.Front{Backend: counting()}}))
	for range 20 {
		c := dialTCP(t, addr)
		must.Get(io.WriteString(c, "*x\r\n"+strings.Repeat("x", 100<<10)))(t)
		if got := c.read(); !strings.HasPrefix(got, "-ERR Protocol error: invalid multibulk length") {
			t.Fatalf("got %s", got)
		}
		if got := c.read(); got != "read: EOF" {
			t.Fatalf("after it %s, want the end", got)
		}
		c.Close()
	}
}

// serving runs a server in a synctest bubble, with a listener.
func serving(t *testing.T, c Config, f func(s *Server, l *nettest.Pipes)) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(c)
		l := nettest.NewPipes()
		defer serve(t, s, l)()
		f(s, l)
	})
}

func TestTimeouts(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		serving(t, Config{Front: service.Front{Backend: counting()}}, func(s *Server, l *nettest.Pipes) {
			c := newClient(l.Dial())
			time.Sleep(1000 * time.Hour)
			if _, err := io.WriteString(c, "PI"); err != nil { // sets a deadline
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			must.Get(io.WriteString(c, "NG\r\n"))(t)
			if got := c.read(); got != "+PONG" {
				t.Errorf("PING = %s", got)
			}
			time.Sleep(1000 * time.Hour) // which is gone
			if got := c.do("PING"); got != "+PONG" {
				t.Errorf("PING = %s", got)
			}
		})
	})
	// A client that has not authenticated has the shorter one of both limits,
	// and one that has, or need not, its own.
	for _, idle := range []time.Duration{0, 3 * time.Second, time.Hour} {
		for _, row := range []struct {
			commands []string
			guard    auth.Authorizer
			known    bool
		}{
			{nil, nil, true}, {[]string{"PING"}, nil, true}, {nil, guard{}, false}, {[]string{"PING"}, guard{}, false}, {[]string{"AUTH wrong"}, guard{}, false},
			{[]string{"AUTH right"}, guard{}, true}, {[]string{"AUTH wrong", "AUTH right", "PING"}, guard{}, true}, {[]string{"HELLO 3 AUTH default right"}, guard{}, true},
		} {
			want := idle
			if !row.known && (idle == 0 || idle > service.DefaultRead) {
				want = service.DefaultRead
			}
			serving(t, Config{Front: service.Front{Backend: counting(), Auth: row.guard}, IdleTimeout: idle}, func(s *Server, l *nettest.Pipes) {
				c := newClient(l.Dial())
				for _, command := range row.commands {
					time.Sleep(time.Second)
					c.do(command)
				}
				if want == 0 {
					time.Sleep(1000 * time.Hour)
					if got := c.do("PING"); !strings.HasPrefix(got, "+") {
						t.Errorf("after %q, without an idle timeout: PING = %s", row.commands, got)
					}
					return
				}
				began := time.Now()
				if got := c.read(); got != "read: EOF" || time.Since(began) != want {
					t.Errorf("idle timeout %v, after %q: %s after %v, want the end after %v", idle, row.commands, got, time.Since(began), want)
				}
			})
		}
	}
	t.Run("cut", func(t *testing.T) {
		serving(t, Config{Front: service.Front{Backend: counting(), Limits: service.Limits{Read: 5 * time.Second}}}, func(s *Server, l *nettest.Pipes) {
			c := newClient(l.Dial())
			time.Sleep(time.Hour)
			began := time.Now()
			must.Get(io.WriteString(c, "PI"))(t)
			for _, want := range []string{"-ERR Protocol error: timeout: a command must arrive completely within 5s", "read: EOF"} {
				if got := c.read(); got != want || time.Since(began) != 5*time.Second {
					t.Errorf("got %s after %v, want %s after 5 s", got, time.Since(began), want)
				}
			}
		})
	})
}

// waiting is a source whose IDs come after a while. Calls that do not wait
// fail.
func waiting(d time.Duration) servicetest.Source {
	return func(ctx context.Context, n int) (firn.Batch, error) {
		if err := ctx.Err(); err != nil {
			return firn.Batch{}, err
		}
		select {
		case <-time.After(d):
			return firn.BatchFromRuns(firn.Run{First: 1, Step: 1, Count: n})
		case <-ctx.Done():
			return firn.Batch{}, ctx.Err()
		}
	}
}

// TestWaits: commands before one that waits are answered first, and a command
// that waits too long is an error.
func TestWaits(t *testing.T) {
	serving(t, Config{Front: service.Front{Backend: servicetest.Open(waiting(3 * time.Second)), RequestTimeout: 5 * time.Second}}, func(s *Server, l *nettest.Pipes) {
		c := newClient(l.Dial())
		began := time.Now()
		must.Get(io.WriteString(c, line("PING")+line("NEXT orders")+line("PING")+strings.Repeat(line("NEXT orders"), 8)))(t)
		at := []int{0, 3, 3, 6, 9, 12, 15, 18, 21, 24, 27}
		for i, want := range at {
			got := c.read()
			if took := time.Since(began); took != time.Duration(want)*time.Second || strings.HasPrefix(got, "-") {
				t.Errorf("answer %d is %s after %v, want it after %d s", i, got, took, want)
			}
		}
	})
	serving(t, Config{Front: service.Front{Backend: servicetest.Open(waiting(time.Minute)), RequestTimeout: 5 * time.Second}}, func(s *Server, l *nettest.Pipes) {
		c := newClient(l.Dial())
		began := time.Now()
		want := "-TRYAGAIN busy: the limit of 5s for a request has passed: context deadline exceeded; retry after 1 s"
		if got := c.do("NEXT orders 5"); got != want || time.Since(began) != 5*time.Second {
			t.Errorf("got %s after %v, want %s", got, time.Since(began), want)
		}
		if got := c.do("PING"); got != "+PONG" {
			t.Errorf("PING = %s", got)
		}
	})
}

// TestShutdown: Shutdown ends idle connections at once, and lets a command
// finish.
func TestShutdown(t *testing.T) {
	serving(t, Config{Front: service.Front{Backend: servicetest.Open(waiting(3 * time.Second))}, IdleTimeout: time.Hour}, func(s *Server, l *nettest.Pipes) {
		idle, half, busy := newClient(l.Dial()), newClient(l.Dial()), newClient(l.Dial())
		must.Get(io.WriteString(half, "*1\r\n$4\r\n"))(t)
		must.Get(io.WriteString(busy, line("NEXT orders")+line("PING")))(t)
		synctest.Wait()
		began := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		for _, c := range []*client{idle, half} {
			if got := c.read(); got != "read: EOF" || time.Since(began) != 0 {
				t.Errorf("a connection without a command has %s after %v", got, time.Since(began))
			}
		}
		for _, want := range []string{"1", "+PONG", "read: EOF"} {
			if got := busy.read(); got != want || time.Since(began) != 3*time.Second {
				t.Errorf("a command under way has %s after %v, want %s", got, time.Since(began), want)
			}
		}
		if err := <-ended; err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if got := newClient(l.Dial()).read(); got != "read: EOF" {
			t.Errorf("a connection after Shutdown has %s", got)
		}
	})
	serving(t, Config{Front: service.Front{Backend: servicetest.Open(waiting(time.Hour)), RequestTimeout: time.Hour}}, func(s *Server, l *nettest.Pipes) {
		c := newClient(l.Dial())
		must.Get(io.WriteString(c, line("NEXT orders")))(t)
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("Shutdown = %v after %v, want the context's error after 1 s", err, time.Since(began))
		}
	})
}
