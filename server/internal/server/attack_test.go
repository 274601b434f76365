package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// served serves in plain text until the test ends and returns the address.
func served(t *testing.T, c Config) (*Server, string) {
	t.Helper()
	l := nettest.Listen(t)
	return serveOn(t, c, l), l.Addr().String()
}

// serveOn serves on a listener until the test ends, by default with a store in
// memory.
func serveOn(t *testing.T, c Config, l net.Listener) *Server {
	t.Helper()
	if c.Store == nil && c.Static == nil {
		c.Store = new(memstore.Store)
	}
	s := must.Get(New(c))(t)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(Listener{Listener: l}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		must.Do(t, <-ended)
	})
	return s
}

// onPipes serves connections in memory in the bubble of a test, at the time of
// the tests.
func onPipes(t *testing.T, c Config) (*Server, *nettest.Pipes) {
	t.Helper()
	toDay()
	l := nettest.NewPipes()
	return serveOn(t, c, l), l
}

// send makes one raw HTTP request on its own connection, and returns the status
// and the rest.
func send(t *testing.T, address, request string) (code int, answer string) {
	t.Helper()
	return sendOver(t, nettest.Dial(t, address), request)
}

func sendOver(t *testing.T, conn net.Conn, request string) (code int, answer string) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(must.Patience))
	must.Get(io.WriteString(conn, request))(t)
	method, _, _ := strings.Cut(request, " ")
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	var head bytes.Buffer
	_ = r.Header.Write(&head)
	return r.StatusCode, head.String() + string(body)
}

// TestSecretsStayOut: secrets of clients, right or wrong or in the wrong place,
// appear in no log, answer or metric, at any level.
func TestSecretsStayOut(t *testing.T) {
	path, token := tokensOf(t)
	log := new(nettest.Output)
	_, address := served(t, Config{TokenFile: path, Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug - 4}))})
	const wrong = "firn_hunter2hunter2hunter2"
	var answers strings.Builder
	for _, secret := range []string{token, wrong} {
		for _, request := range []string{
			"GET /v1/sequencers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\n\r\n",
			"GET /v1/sequencers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic " + secret + "\r\n\r\n",
			"GET /v1/sequencers HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + secret + "\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\n\r\n",
			"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: " + fmt.Sprint(len("token="+secret)) + "\r\n\r\ntoken=" + secret,
			"GET /inspect HTTP/1.1\r\nHost: localhost\r\nCookie: firn-session=" + secret + "\r\nAccept: text/html\r\n\r\n",
			"POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\nX-Request-Id: 1\r\n\r\n",
		} {
			_, answer := send(t, address, request)
			answers.WriteString(answer)
		}
		for _, command := range []string{"AUTH " + secret + "\r\nINFO\r\nCLIENT LIST\r\nNEXT orders\r\n", "HELLO 3 AUTH default " + secret + "\r\n", "AUTH user " + secret + "\r\n"} {
			answers.WriteString(talk(t, address, command))
		}
	}
	if got := answers.String(); strings.Contains(got, token) || strings.Contains(got, wrong) {
		t.Errorf("an answer has what a client has shown: %s", got)
	}
	if got := log.String(); strings.Contains(got, token) || strings.Contains(got, wrong) || strings.Contains(got, auth.Hash(token)) {
		t.Errorf("the log has it: %s", got)
	} else if !strings.Contains(got, "request") {
		t.Errorf("the log has no requests: %s", got)
	}
}

// talk sends RESP commands in one packet and returns all answers, once the
// connection is idle or has ended.
func talk(t *testing.T, address, commands string) string {
	t.Helper()
	return talkOver(t, nettest.Dial(t, address), commands)
}

func talkOver(t *testing.T, conn net.Conn, commands string) string {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(must.Patience))
	must.Get(io.WriteString(conn, commands+"QUIT\r\n"))(t)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%q: %v", commands, err)
	}
	return string(all)
}

// TestLongTexts: whatever a client sends, and wherever, it writes no long line to
// the log.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("z", 12<<10)
	var log bytes.Buffer
	tokens, _ := tokensOf(t)
	for _, file := range []string{"", tokens} {
		s, address := served(t, Config{TokenFile: file, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		var requests []string
		for _, path := range []string{"/v1/sequencers/orders/next", "/v1/sequencers/orders", "/v1/inspect/1", "/inspect", "/readyz", "/nowhere"} {
			for _, header := range []string{
				"X-Request-Id", "Firn-Request-Id", "Firn-Nonce", service.ForwardedHeader, "User-Agent", "Referer", "Origin", "Sec-Fetch-Site", "Accept", "Accept-Language", "Range",
				"Authorization", "Cookie", "Traceparent", "Tracestate", "Baggage", "Forwarded", "X-Forwarded-For", "X-Real-Ip", "Content-Type", "Upgrade", "Via",
			} {
				for _, value := range []string{long, "text/html," + long, "Bearer firn_" + long, "firn=" + long} {
					requests = append(requests, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+header+": "+value+"\r\n\r\n")
				}
			}
			requests = append(requests, "GET "+path+" HTTP/1.1\r\nHost: "+long+"\r\n\r\n", "Z"+long[:20]+" "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n",
				"GET "+path+"?"+long+" HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET "+path+long+" HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST "+path+"/"+long+" HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nContent-Length: 0\r\n\r\n",
				"GET /"+long+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
		for _, request := range requests {
			send(t, address, request)
		}
		for _, command := range []string{long, "NEXT " + long, "NEXT orders 1 " + long, "AUTH " + long, "AUTH default " + long, "CLIENT SETNAME " + long, "CLIENT SETINFO lib-name " + long, "HELLO 3 SETNAME " + long} {
			talk(t, address, command+"\r\n")
		}
		must.Do(t, s.Shutdown(t.Context()))
	}
	for line := range strings.Lines(log.String()) {
		if len(line) > 1024 {
			t.Errorf("a line of the log has %d bytes: %.300s", len(line), line)
		}
	}
	if n := strings.Count(log.String(), "msg=request"); n < 500 {
		t.Errorf("the log has only %d requests", n)
	}
}
