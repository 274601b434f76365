package server

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestConfig: a Server has one source of IDs, which can make them.
func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{}, {Store: new(memstore.Store), Static: new(service.StaticBackendConfig)}, {Static: &service.StaticBackendConfig{Node: 1 << 40}},
	} {
		if srv, err := New(c); err == nil {
			t.Errorf("New(%+v) = %v, want an error", c, srv)
		}
	}
}

// TestListeners: each listener serves the protocols that it is for, and metrics
// count the connections of all, also before Serve and after Shutdown.
func TestListeners(t *testing.T) {
	srv := must.Get(New(Config{Static: &service.StaticBackendConfig{Node: 3}}))(t)
	var listeners []Listener
	for _, only := range [][]listen.Protocol{nil, {listen.RESP}} {
		l := nettest.Listen(t)
		listeners = append(listeners, Listener{Listener: l, Only: only})
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listeners...) }()
	for _, l := range listeners {
		conn := nettest.Dial(t, l.Addr().String())
		fmt.Fprint(conn, "PING\r\n")
		if answer, err := bufio.NewReader(conn).ReadString('\n'); answer != "+PONG\r\n" {
			t.Errorf("%v: the answer to PING is %q, %v", l.Only, answer, err)
		}
	}
	_, text := send(t, listeners[0].Addr().String(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for _, want := range []string{`firn_connections{protocol="resp"} 2`, `firn_connections{protocol="http"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics do not have %s", want)
		}
	}
	if resp, err := http.Get("http://" + listeners[1].Addr().String() + "/healthz"); err == nil && resp.StatusCode == http.StatusOK {
		t.Error("HTTP is served at a listener for RESP")
	}
	http.DefaultClient.CloseIdleConnections()
	for range 2 {
		must.Do(t, srv.Shutdown(t.Context()))
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A brokenListener fails at once.
type brokenListener struct{ net.Listener }

var errBroken = errors.New("broken")

func (brokenListener) Accept() (net.Conn, error) { return nil, errBroken }

// TestServeEnds: Serve returns what fails, and closes its listeners in any
// case.
func TestServeEnds(t *testing.T) {
	closed := func(l net.Listener) bool {
		_, err := l.Accept()
		return errors.Is(err, net.ErrClosed)
	}
	srv := must.Get(New(Config{Static: new(service.StaticBackendConfig)}))(t)
	if err := srv.Serve(); err == nil {
		t.Error("Serve without a listener returns nil")
	}
	broken, well := nettest.Listen(t), nettest.Listen(t)
	if err := srv.Serve(Listener{Listener: brokenListener{broken}}, Listener{Listener: well}); !errors.Is(err, errBroken) {
		t.Errorf("Serve = %v, want %v", err, errBroken)
	}
	if resp, err := http.Get("http://" + well.Addr().String() + "/readyz"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the other listener: %v, %v", resp, err)
	}
	again := nettest.Listen(t)
	if err := srv.Serve(Listener{Listener: again}); err == nil || !closed(again) {
		t.Errorf("a second Serve: %v", err)
	}
	must.Do(t, srv.Shutdown(t.Context()))
	srv = must.Get(New(Config{Static: new(service.StaticBackendConfig)}))(t)
	gone := nettest.Listen(t)
	time.AfterFunc(10*time.Millisecond, func() { _ = gone.Close() })
	if err := srv.Serve(Listener{Listener: gone}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve on a listener that another one closes: %v, want %v", err, net.ErrClosed)
	}
	must.Do(t, srv.Shutdown(t.Context()))
	late := nettest.Listen(t)
	if err := srv.Serve(Listener{Listener: late}); err != nil || !closed(late) || !closed(well) {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

// TestShutdownBesideServe: whichever comes first, both return.
func TestShutdownBesideServe(t *testing.T) {
	for range 50 {
		srv := must.Get(New(Config{Store: new(memstore.Store)}))(t)
		l := nettest.Listen(t)
		var both sync.WaitGroup
		both.Go(func() {
			if err := srv.Serve(Listener{Listener: l}); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := srv.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
	}
}

// TestTokenEndsWhileDraining: a token that is taken out of its file ends while
// the server drains.
func TestTokenEndsWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		write := func(text string) {
			t.Helper()
			must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		}
		token, hash := auth.NewToken()
		write("tokens:\n- {name: a, role: generate, sha256: " + hash + "}\n")
		srv, l := onPipes(t, Config{Static: new(service.StaticBackendConfig), TokenFile: path})
		client := l.Dial()
		defer client.Close()
		in := bufio.NewReader(client)
		for i, want := range []string{"+OK\r\n", "+PONG\r\n", "-NOAUTH Authentication required.\r\n"} {
			fmt.Fprint(client, [...]string{"AUTH " + token, "PING", "PING"}[i]+"\r\n")
			if got, err := in.ReadString('\n'); got != want || err != nil {
				t.Errorf("answer %d is %q, %v, want %q", i, got, err, want)
			}
			if i == 0 {
				srv.Drain()
				continue
			}
			write("tokens: []\n")
			time.Sleep(10 * time.Second)
		}
	})
}
