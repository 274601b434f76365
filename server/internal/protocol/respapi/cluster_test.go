package respapi

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestCluster: two servers with one store give different IDs, and connections
// that use a sequencer learn what happens to it.
func TestCluster(t *testing.T) { synctest.Test(t, testCluster) }

func testCluster(t *testing.T) {
	time.Sleep(time.Until(day))
	store := new(memstore.Store)
	var clients []*client
	for range 2 {
		cluster := service.NewCluster(service.ClusterConfig{Fleet: service.NewFleet(store, nil), Config: sequencer.Config{Window: 5 * time.Second}})
		s, l := NewServer(Config{Backend: cluster, Limit: 5 * time.Second}), nettest.NewPipes()
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		clients = append(clients, newClient(l.Dial()))
		t.Cleanup(func() {
			_ = s.Close()
			<-served
			_ = cluster.Close(context.Background())
		})
	}
	seen := make(map[string]bool)
	for round := range 20 {
		for _, c := range clients {
			go io.WriteString(c, strings.Repeat(line("NEXT orders"), 100)+line("NEXT orders")+line("PING")) // a pipe holds nothing
			for range 101 {
				id := c.read()
				if seen[id] || strings.HasPrefix(id, "-") {
					t.Fatalf("round %d: %s is a duplicate or not an ID", round, id)
				}
				seen[id] = true
			}
			if got := c.read(); got != "+PONG" {
				t.Fatalf("PING = %s", got)
			}
		}
	}
	if _, err := grant.Destroy(t.Context(), store, "orders", nil); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		got := clients[0].do("NEXT orders")
		if strings.HasPrefix(got, "-ERR destroyed: ") {
			break
		}
		if seen[got] || strings.HasPrefix(got, "-") || time.Now().After(deadline) {
			t.Fatalf("after Destroy NEXT = %s", got)
		}
		seen[got] = true
	}
	if got := clients[0].do("NEXT users"); strings.HasPrefix(got, "-") {
		t.Errorf("NEXT users = %s", got)
	}
}
