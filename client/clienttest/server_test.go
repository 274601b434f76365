package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/client/clienttest"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// A server is a Handler that listens.
type server struct {
	*clienttest.Handler
	*httptest.Server
}

// start starts a server, which ends with the test.
func start(t *testing.T, o *clienttest.Options) server {
	t.Helper()
	h := must.Get(clienttest.NewHandler(o))(t)
	s := server{h, httptest.NewServer(h)}
	t.Cleanup(func() { h.Close(); s.Server.Close() })
	return s
}

// A test of a program.
func TestServer(t *testing.T) {
	one, two := start(t, &clienttest.Options{Node: 1}), start(t, &clienttest.Options{Node: 2})
	c := must.Get(client.New(client.Config{Servers: []string{one.URL, two.URL}}))(t)
	defer c.Close(context.Background())
	seen := make(map[firn.ID]bool)
	batches := func(n int) {
		t.Helper()
		for range n {
			b := must.Get(c.Sequencer("orders").NextBatch(t.Context(), 5000))(t)
			for id := range b.All() {
				if seen[id] {
					t.Fatalf("%v comes twice", id)
				}
				seen[id] = true
			}
		}
	}
	batches(10)
	one.FailNext(1, client.KindInternal)
	two.FailNext(2, client.KindDraining)
	two.Delay(time.Millisecond)
	batches(10)
	if one.Requests() == 0 || two.Requests() == 0 {
		t.Errorf("%d and %d requests, want some to each", one.Requests(), two.Requests())
	}
	one.Handler.Close()
	one.Handler.Close()
	one.CloseClientConnections()
	one.Server.Close()
	batches(5)
	if taken := one.Taken() + two.Taken(); taken < uint64(len(seen)) {
		t.Errorf("%d IDs were taken, and %d have come", taken, len(seen))
	}
}

// TestFailNext: a program can test each error that a server's answer is for it.
func TestFailNext(t *testing.T) {
	for _, tt := range []struct {
		kind   client.Kind
		status int
		retry  time.Duration
		is     error
	}{
		{client.KindDetached, 409, 0, grant.ErrDetached},
		{client.KindMoved, 409, 0, grant.ErrMoved},
		{client.KindNoSequencer, 404, 0, grant.ErrNotFound},
		{client.KindStoreUnavailable, 503, time.Second, firn.ErrUnavailable},
		{client.KindDraining, 503, 0, firn.ErrUnavailable},
		{client.KindRateLimited, 429, time.Second, firn.ErrExhausted},
		{client.KindRecreated, 503, time.Second, firn.ErrExhausted},
		{"frozen", 500, 0, nil},
	} {
		s := start(t, nil)
		c := must.Get(client.New(client.Config{Servers: []string{s.URL}, Patience: -1}))(t)
		s.FailNext(1, tt.kind)
		_, err := c.Sequencer("orders").NextBatch(t.Context(), 1)
		said, ok := errors.AsType[*client.Error](err)
		if !ok || said.Kind != tt.kind || said.Status != tt.status || said.RetryAfter != tt.retry ||
			tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, want status %d, retry in %v, and a match of %v", tt.kind, err, tt.status, tt.retry, tt.is)
		}
		if s.Taken() != 0 {
			t.Errorf("%s: %d IDs were taken", tt.kind, s.Taken())
		}
		must.Do(t, c.Close(t.Context()))
	}
}

func TestRequireToken(t *testing.T) {
	s := start(t, nil)
	s.RequireToken("secret")
	for token, want := range map[string]int{"": 401, "wrong": 401, "secret": 0} {
		c, err := client.New(client.Config{Servers: []string{s.URL}, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Sequencer("orders").Next(t.Context())
		var said *client.Error
		if errors.As(err, &said) != (want != 0) || said != nil && said.Status != want {
			t.Errorf("token %q: %v, want status %d", token, err, want)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Both forms of an answer, and the requests that the server rejects.
func TestForms(t *testing.T) { synctest.Test(t, testForms) }

func testForms(t *testing.T) {
	time.Sleep(time.Until(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
	for target, want := range map[string]string{
		"/v1/sequencers/a/next?count=2&runs=true&format=hex": "200 {\"runs\":[{\"first\":\"01a07e5080000000\",\"step\":\"1\",\"count\":2}]}\n",
		"/v1/sequencers/a/next?count=1":                      "200 \x01\xa0~P\x80\x00\x00\x00",
		"/v1/sequencers/a/next":                              "400 bad-parameter",
		"/v1/sequencers/a/next?count=0":                      "400 bad-parameter",
		"/v1/sequencers/a/next?count=100001":                 "400 batch-too-large",
		"/v1/sequencers/-a/next":                             "400 bad-name",
		"/v1/sequencers//next":                               "400 bad-name",
		"/v1/sequencers/a":                                   "404 not-found",
	} {
		h, err := clienttest.NewHandler(&clienttest.Options{Layout: firn.MustParseLayout("default,even=0")})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", target, nil))
		body, _ := io.ReadAll(w.Result().Body)
		got := fmt.Sprintf("%d %s", w.Code, body)
		if w.Code != http.StatusOK {
			_, kind, _ := strings.Cut(string(body), "urn:firn:problem:")
			kind, _, _ = strings.Cut(kind, `"`)
			got = fmt.Sprintf("%d %s", w.Code, kind)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	if _, err := clienttest.NewHandler(&clienttest.Options{Node: 1 << 40}); err == nil {
		t.Error("a node ID that is too large was taken")
	}
}
