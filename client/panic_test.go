package client

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn"
)

// A bomb is the caller's code in a Client: a token source, a transport and the
// bodies of its answers. It panics at the n-th call.
type bomb struct {
	left    atomic.Int64
	explode func()
	http.RoundTripper
}

func (b *bomb) touch() {
	if b.left.Add(-1) == 0 {
		b.explode()
	}
}

func (b *bomb) token(context.Context) (string, error) { b.touch(); return "secret", nil }

func (b *bomb) RoundTrip(r *http.Request) (*http.Response, error) {
	b.touch()
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = minedBody{resp.Body, b}
	}
	return resp, err
}

type minedBody struct {
	io.ReadCloser
	*bomb
}

func (m minedBody) Read(p []byte) (int, error) { m.touch(); return m.ReadCloser.Read(p) }

// TestCallersCodeThatPanics: if code of the caller panics, or ends the
// goroutine, that call fails, in the foreground or in the background; the
// sequencer and the client keep working.
func TestCallersCodeThatPanics(t *testing.T) {
	for name, explode := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for n := int64(1); n <= 8; n++ {
			inBubble(t, func(t *testing.T, net *network) {
				h := net.node(t, "a", 1, "default")
				h.RequireToken("secret")
				transport := &http.Transport{DialContext: net.dial}
				t.Cleanup(transport.CloseIdleConnections)
				b := &bomb{explode: explode, RoundTripper: transport}
				c := newClient(t, Config{Servers: []string{"http://a"}, HTTPClient: &http.Client{Transport: b}, TokenSource: b.token})
				q := c.Sequencer("orders")
				all := make(seen)
				for what, call := range map[string]func(){
					"Next":      func() { _, _ = q.Next(t.Context()) },
					"Fill":      func() { _ = q.Fill(t.Context(), make([]firn.ID, 200)) },
					"NextBatch": func() { _, _ = q.NextBatch(t.Context(), 3) },
				} {
					b.left.Store(n)
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						call()
					}()
					<-done
					b.left.Store(0)
					dst := make([]firn.ID, 300)
					if err := q.Fill(t.Context(), dst); err != nil {
						t.Errorf("Fill after a %s in %s: %v", name, what, err)
					}
					batch, err := q.NextBatch(t.Context(), 3)
					if err != nil {
						t.Errorf("NextBatch after a %s in %s: %v", name, what, err)
					}
					all.add(t, slices.AppendSeq(dst, batch.All())...)
				}
			})
		}
	}
}
