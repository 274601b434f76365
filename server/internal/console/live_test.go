package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A stream reads events.
type stream struct {
	t *testing.T
	r *bufio.Scanner
}

// next is the next event and its data; ok is false at the end.
func (s *stream) next() (event, data string, ok bool) {
	for s.r.Scan() {
		line := s.r.Text()
		switch {
		case line == "":
			return event, data, true
		case strings.HasPrefix(line, "event: "):
			event = line[len("event: "):]
		case strings.HasPrefix(line, "data: "), line == "data:":
			data += strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " ") + "\n"
		default:
			s.t.Errorf("not a line of an event: %q", line)
		}
	}
	return "", "", false
}

func openStream(t *testing.T, web *httptest.Server, page string, headers ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", web.URL+"/events?page="+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Body.Close() })
	if w.StatusCode != 200 || w.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, %s", w.StatusCode, w.Header)
	}
	s := &stream{t, bufio.NewScanner(w.Body)}
	s.r.Buffer(nil, 1<<20)
	return s
}

// TestStream: a stream sends changes, and heartbeats while nothing changes. It
// outlives the limits of other requests, and ends with the console.
func TestStream(t *testing.T) {
	h, k, _ := newWorld(t, func(c *Config) { c.Every = 10 * time.Millisecond })
	server := httpapi.NewServer(h.(*httpapi.Handler))
	server.ReadTimeout, server.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	web := httptest.NewUnstartedServer(h)
	web.Config = server
	web.Start()
	t.Cleanup(web.Close)
	s := openStream(t, web, "members")
	if event, data, ok := s.next(); !ok || event != "view" || !strings.Contains(data, "No servers yet") {
		t.Fatalf("the first event is %q %q", event, data)
	}
	for range 20 { // longer than both limits
		if event, data, ok := s.next(); !ok || event != "beat" || data != "\n" {
			t.Fatalf("where nothing changes there is %q %q, want a beat", event, data)
		}
	}
	s = openStream(t, web, "overview")
	if event, _, ok := s.next(); !ok || event != "view" {
		t.Fatalf("the first event is %q", event)
	}
	makeOne(t, k, "orders")
	for {
		event, data, ok := s.next()
		if !ok {
			t.Fatal("the stream has ended before it showed a new sequencer")
		}
		if event == "view" && strings.Contains(data, "orders") {
			break
		}
	}
	k.Close()
	for {
		if _, _, ok := s.next(); !ok {
			break
		}
	}
}

// TestStreamEndsWithItsToken: the page learns that its token ended, and asks to
// sign in.
func TestStreamEndsWithItsToken(t *testing.T) {
	set, secrets := tokens(t)
	var now = make(chan *auth.Set, 1)
	now <- set
	h, _, _ := newWorld(t, func(c *Config) {
		c.Every = 10 * time.Millisecond
		c.Guard = auth.NewGuard(func() *auth.Set { s := <-now; now <- s; return s }, nil)
	})
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	s := openStream(t, web, "overview", signInAs(t, h, secrets["read"]))
	if event, _, ok := s.next(); !ok || event != "view" {
		t.Fatalf("the first event is %q", event)
	}
	<-now
	other, _ := tokens(t)
	now <- other
	last := ""
	for {
		event, _, ok := s.next()
		if !ok {
			break
		}
		last = event
	}
	if last != "over" {
		t.Errorf("the last event is %q, want over", last)
	}
}
