package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// TestCloseWhileOpening: whenever a server stops while it opens a sequencer,
// its node ID is free at once for its successor.
func TestCloseWhileOpening(t *testing.T) {
	for moment := range 16 {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(27 * 365 * 24 * time.Hour)
			m := &sluggish{each: 100 * time.Millisecond}
			config := ClusterConfig{Fleet: NewFleet(m, nil), Config: sequencer.Config{Nodes: &sequencer.Range{}}}
			c := NewCluster(config)
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				limited, cancel := context.WithTimeout(t.Context(), DefaultLimit)
				defer cancel()
				if s, err := c.Sequencer(limited, "orders"); err == nil {
					_, _ = s.Source.NextBatch(limited, 1)
				}
			}()
			time.Sleep(time.Duration(moment)*50*time.Millisecond + time.Millisecond)
			limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := c.Close(limited); err != nil {
				t.Errorf("moment %d: %v", moment, err)
			}
			<-asked
			_ = grant.Nodes(t.Context(), &m.Store, "orders", func(n grant.NodeInfo, err error) bool {
				if n.Held {
					t.Errorf("moment %d: node ID %d is held for another %v", moment, n.Node, time.Until(n.Until))
				}
				return err == nil
			})
			time.Sleep(time.Minute) // let calls in progress end
		})
	}
}
