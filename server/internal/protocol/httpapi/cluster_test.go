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
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

var errDown = errors.New("secret: dial 10.0.0.1: connection refused")

// newFlaky makes a store that can be made unreachable.
func newFlaky() *nettest.Store { return &nettest.Store{Store: new(memstore.Store), Err: errDown} }

// newCluster makes a Cluster on a store and closes it when the test ends.
func newCluster(t *testing.T, c service.ClusterConfig) *service.Cluster {
	t.Helper()
	cluster := service.NewCluster(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = cluster.Close(ctx) // a second call is harmless
	})
	return cluster
}

// TestNodesOutsideLayout: node IDs that the layout does not have are an error
// of the server's configuration, not of its store.
func TestNodesOutsideLayout(t *testing.T) {
	var log strings.Builder
	config := sequencer.Options{Layout: firn.MustParseLayout("js53"), Nodes: &grant.Range{Lo: 5, Hi: 900}}
	c := newCluster(t, service.ClusterConfig{Admin: service.NewStoreAdmin(new(memstore.Store), nil), Options: config})
	wantProblem(t, do(NewHandler(Config{Backend: c, Logger: slog.New(slog.NewTextHandler(&log, nil))}), "POST", "/v1/sequencers/orders/next"), service.Internal)
	if !strings.Contains(log.String(), "has 0..31") {
		t.Errorf("the log says %s", &log)
	}
}

// TestClusterLife: what a server answers while other servers change its
// sequencer.
func TestClusterLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(day))
		store := new(memstore.Store)
		ctx := t.Context()
		c := newCluster(t, service.ClusterConfig{Admin: service.NewStoreAdmin(store, nil), Options: sequencer.Options{Window: 2 * time.Second}})
		h := NewHandler(Config{Backend: c, Limit: 300 * time.Millisecond})
		next := func() *httptest.ResponseRecorder { return do(h, "POST", "/v1/sequencers/orders/next") }
		wantIDs := func() {
			t.Helper()
			for end := time.Now().Add(10 * time.Second); next().Code != 200; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("no IDs")
				}
			}
		}
		must := func(_ grant.Info, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		wantIDs()
		must(grant.Detach(ctx, store, "orders", nil))
		wantProblem(t, next(), service.Detached, "orders")
		must(grant.Attach(ctx, store, "orders"))
		wantIDs()
		must(grant.Destroy(ctx, store, "orders", nil))
		wantProblem(t, next(), service.Destroyed, "orders")
		must(grant.Purge(ctx, store, "orders"))
		must(grant.Create(ctx, store, "orders", servicetest.Config(firn.MustParseLayout("uuidv7")), nil))
		wantIDs()
		if s, err := c.Sequencer(ctx, "orders", nil); err != nil || s.Layout.String() != "uuidv7" {
			t.Errorf("the new one has layout %v, %v", s.Layout, err)
		}
	})
}

// A writeCounter counts writes.
type writeCounter struct{ n atomic.Int64 }

func (w *writeCounter) Write(p []byte) (int, error) {
	w.n.Add(1)
	return len(p), nil
}

// TestReadyWithoutNumber: a server that found no node ID is not ready until it
// finds one, which it tries whenever it is probed, or until another server that
// can be asked has one. It logs each change once.
func TestReadyWithoutNumber(t *testing.T) {
	store := newFlaky()
	one := sequencer.Options{Nodes: &grant.Range{Lo: 3, Hi: 3}}
	holder := newCluster(t, service.ClusterConfig{Admin: service.NewStoreAdmin(store, nil), Options: one})
	if _, err := holder.Sequencer(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var elsewhere atomic.Bool
	tries := new(writeCounter)
	tried := one
	tried.Logger = slog.New(slog.NewTextHandler(tries, nil))
	c := newCluster(t, service.ClusterConfig{Admin: service.NewStoreAdmin(store, nil), Options: tried, Peers: helpfulPeers{&elsewhere}})
	h := NewHandler(Config{Backend: c, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ready := func() *httptest.ResponseRecorder { return do(h, "GET", "/readyz") }
	if w := ready(); w.Code != 200 {
		t.Errorf("before anybody wants IDs: %d %s", w.Code, w.Body)
	}
	wantProblem(t, do(h, "POST", "/v1/sequencers/orders/next"), service.NodesExhausted, "node ID 3 of sequencer orders is held by another")
	for range 3 {
		wantProblem(t, ready(), service.NodesExhausted, "sequencer orders")
	}
	if n := tries.n.Load(); n > 1 {
		t.Errorf("%d lines about a number that was not acquired, want one: it is held, and need not be tried", n)
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
	if err := holder.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	one := sequencer.Options{Nodes: &grant.Range{Lo: 3, Hi: 3}}
	holder := newCluster(t, service.ClusterConfig{Admin: service.NewStoreAdmin(store, nil), Options: one})
	if _, err := holder.Sequencer(t.Context(), "orders", nil); err != nil {
		t.Fatal(err)
	}
	restored := &struct{ *memstore.Store }{store}
	c := newCluster(t, service.ClusterConfig{Admin: service.NewStoreAdmin(restored, nil), Options: one})
	if _, err := c.Sequencer(t.Context(), "orders", nil); !errors.Is(err, grant.ErrNodesExhausted) {
		t.Fatal(err)
	}
	empty := new(memstore.Store) // as after restoring an old backup
	restored.Store = empty
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := grant.Lookup(t.Context(), empty, "orders"); !errors.Is(err, grant.ErrNotFound) {
		t.Errorf("it was created: %v", err)
	}
}

// TestUnreadableConfiguration: a server is unready if the configuration of no
// sequencer can be read, and the answer names the record; it is ready again
// once the record is restored. One unreadable configuration among others leaves
// it ready.
func TestUnreadableConfiguration(t *testing.T) {
	for what, broken := range map[string]string{"damaged": "{", "newer": `{"v":99}`} {
		t.Run(what, func(t *testing.T) {
			store := new(memstore.Store)
			put := func(name, value string) {
				t.Helper()
				key := "v1/" + name + "/config"
				old, err := store.Get(t.Context(), key)
				if err == nil {
					_, err = store.CAS(t.Context(), key, old, []byte(value))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			create := func(name string) {
				t.Helper()
				if _, err := grant.Create(t.Context(), store, name, grant.DefaultConfig(store, firn.Default(), nil), nil); err != nil {
					t.Fatal(err)
				}
			}
			create("orders")
			good, err := store.Get(t.Context(), "v1/orders/config")
			if err != nil {
				t.Fatal(err)
			}
			c := service.NewCluster(service.ClusterConfig{Admin: service.NewStoreAdmin(store, nil)})
			defer c.Close(t.Context())
			h := NewHandler(Config{Backend: c})
			ready := func(what string, code int) {
				t.Helper()
				if w := do(h, "GET", "/readyz"); w.Code != code || code != 200 && !strings.Contains(w.Body.String(), "v1/orders/config") {
					t.Errorf("%s: %d %s, want %d", what, w.Code, w.Body, code)
				}
			}
			put("orders", broken)
			ready("idle, and unreadable", 503)
			put("orders", string(good))
			ready("restored", 200)
			put("orders", broken)
			wantProblem(t, do(h, "POST", "/v1/sequencers/orders/next"), service.BadRecord)
			ready("unreadable when it was used", 503)
			create("users")
			ready("one among others", 200)
		})
	}
}

// TestUnreadableNode: an unreadable record of a node ID is listed as damaged,
// and hides no other.
func TestUnreadableNode(t *testing.T) {
	store := new(memstore.Store)
	c := service.NewCluster(service.ClusterConfig{Admin: service.NewStoreAdmin(store, nil)})
	defer c.Close(t.Context())
	h := NewHandler(Config{Backend: c})
	do(h, "POST", "/v1/sequencers/orders/next")
	if ok, err := store.CAS(t.Context(), "v1/orders/n/0999", nil, []byte("{")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	w := do(h, "GET", "/v1/sequencers/orders")
	for _, want := range []string{`"held":true`, `"damaged":[999]`} {
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s has no %s", w.Code, w.Body, want)
		}
	}
}
