package service

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// TestImpatientClients: clients that are less patient than opening a sequencer
// takes get their IDs in the end, and do not use up the node IDs.
func TestImpatientClients(t *testing.T) {
	for _, each := range []time.Duration{150, 180, 190, 210, 240, 300} {
		t.Run(fmt.Sprint(int(each)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(27 * 365 * 24 * time.Hour)
				m := &faultstore.Store{Store: new(memstore.Store), Delay: each * time.Millisecond}
				b := NewStoreBackend(StoreBackendConfig{Admin: NewStoreAdmin(m, nil), Options: sequencer.Options{Window: 60 * time.Second}})
				good := 0
				for range 30 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					s, err := b.Sequencer(ctx, "orders", nil)
					if err == nil {
						_, err = s.Take(ctx, 1)
					}
					if err == nil {
						good++
					}
					cancel()
				}
				held := 0
				_ = grant.Nodes(t.Context(), m.Store, "orders", func(n grant.NodeInfo, err error) bool {
					if n.Held {
						held++
					}
					return err == nil
				})
				if good < 25 || held != 1 {
					t.Errorf("%d of 30 calls were answered, and %d node IDs are held", good, held)
				}
				must.Do(t, b.Close(t.Context()))
			})
		})
	}
}
