package httpapi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

var errDown = errors.New("secret: dial 10.0.0.1: connection refused")

// newFlaky makes a store that can be made unreachable.
func newFlaky() *faultstore.Store { return &faultstore.Store{Store: new(memstore.Store), Err: errDown} }

// A tryCounter counts the lines of members that found no node ID. One that ends
// before that writes none.
type tryCounter struct{ n atomic.Int64 }

func (w *tryCounter) Write(p []byte) (int, error) {
	w.n.Add(int64(bytes.Count(p, []byte("no node ID acquired"))))
	return len(p), nil
}

// TestReadyWithoutNumber: a server that found no node ID is not ready until it
// finds one, which it tries whenever it is probed, or until another server that
// can be asked has one. It logs each change once.
func TestReadyWithoutNumber(t *testing.T) { synctest.Test(t, testReadyWithoutNumber) }

func testReadyWithoutNumber(t *testing.T) {
	time.Sleep(27 * 365 * 24 * time.Hour)
	store := newFlaky()
	one := sequencer.Options{Nodes: &grant.NodeRange{Lo: 3, Hi: 3}}
	holder := servicetest.NewStoreBackend(t, store, service.StoreBackendConfig{Options: one})
	must.Get(holder.Sequencer(t.Context(), "orders", nil))(t)
	var log bytes.Buffer
	var elsewhere atomic.Bool
	tries := new(tryCounter)
	tried := one
	tried.Logger = slog.New(slog.NewTextHandler(tries, nil))
	c := servicetest.NewStoreBackend(t, store, service.StoreBackendConfig{Options: tried, Peers: helpfulPeers{&elsewhere}})
	h := NewHandler(Config{Front: service.Front{Backend: c, Logger: slog.New(slog.NewTextHandler(&log, nil))}})
	ready := func() *httptest.ResponseRecorder { return do(h, "GET", "/readyz") }
	if w := ready(); w.Code != 200 {
		t.Errorf("before anybody wants IDs: %d %s", w.Code, w.Body)
	}
	wantProblem(t, do(h, "POST", "/v1/sequencers/orders/next"), service.NodesExhausted, "node ID 3 of sequencer orders is held by another")
	for range 3 {
		wantProblem(t, ready(), service.NodesExhausted, "sequencer orders")
	}
	if n := tries.n.Load(); n > 1 {
		t.Errorf("%d tries to acquire the node ID, want one: it is held, and need not be tried", n)
	}
	elsewhere.Store(true)
	if w := ready(); w.Code != 200 {
		t.Errorf("another server can be asked: %d %s", w.Code, w.Body)
	}
	elsewhere.Store(false)
	wantProblem(t, ready(), service.NodesExhausted)
	store.Cut.Store(true)
	for range 3 {
		wantProblem(t, ready(), service.StoreUnavailable)
	}
	store.Cut.Store(false)
	must.Do(t, holder.Close(t.Context()))
	if w := ready(); w.Code != 200 {
		t.Errorf("the number is free: %d %s", w.Code, w.Body)
	}
	attached := false
	c.Usage(func(name string, s *service.Usage) {
		attached = name == "orders" && s.Status.Phase == grant.Holding
	})
	if !attached {
		t.Error("orders is not attached: /readyz has not looked for a number")
	}
	var lines []string
	for line := range strings.Lines(log.String()) {
		_, line, _ = strings.Cut(line, " ")
		line, _, _ = strings.Cut(line, " error=")
		lines = append(lines, strings.TrimSpace(line))
	}
	notReady := "level=WARN msg=\"not ready: /readyz answers 503\" reason="
	again := "level=INFO msg=\"ready again\""
	want := []string{notReady + "nodes-exhausted", again, notReady + "nodes-exhausted", notReady + "store-unavailable", again}
	if !slices.EqualFunc(lines, want, strings.HasPrefix) {
		t.Errorf("the log says\n%s", &log)
	}
	if strings.Contains(log.String(), "sequencer readyz") {
		t.Errorf("there is no sequencer of this name:\n%s", &log)
	}
}

// helpfulPeers are Peers that give nothing, and report that they can help with
// orders while can is set.
type helpfulPeers struct{ can *atomic.Bool }

func (h helpfulPeers) Take(_ context.Context, _ string, _ firn.Layout, _ int, lacks error) (service.Batch, error) {
	return service.Batch{}, lacks
}

func (h helpfulPeers) CanHelp() bool { return h.can.Load() }

// TestReadyCreatesNothing: a readiness probe does not recreate a sequencer that
// is gone.
func TestReadyCreatesNothing(t *testing.T) {
	store := new(memstore.Store)
	one := sequencer.Options{Nodes: &grant.NodeRange{Lo: 3, Hi: 3}}
	holder := servicetest.NewStoreBackend(t, store, service.StoreBackendConfig{Options: one})
	must.Get(holder.Sequencer(t.Context(), "orders", nil))(t)
	restored := &struct{ *memstore.Store }{store}
	c := servicetest.NewStoreBackend(t, restored, service.StoreBackendConfig{Options: one})
	if _, err := c.Sequencer(t.Context(), "orders", nil); !errors.Is(err, grant.ErrNodesExhausted) {
		t.Fatal(err)
	}
	empty := new(memstore.Store) // as after restoring an old backup
	restored.Store = empty
	must.Do(t, c.Ready(t.Context()))
	if _, err := grant.Lookup(t.Context(), empty, "orders"); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("it was created: %v", err)
	}
}

// TestUnreadableNode: an unreadable record of a node ID is listed as damaged,
// and hides no other.
func TestUnreadableNode(t *testing.T) {
	store := new(memstore.Store)
	h := handlerOn(t, store, service.Front{})
	do(h, "POST", "/v1/sequencers/orders/next")
	faultstore.Put(t, store, "v1/orders/n/0999", "{")
	w := do(h, "GET", "/v1/sequencers/orders")
	for _, want := range []string{`"held":true`, `"damaged":[999]`} {
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s has no %s", w.Code, w.Body, want)
		}
	}
}
