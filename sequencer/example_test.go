package sequencer_test

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/sequencer"
)

// A program that makes the IDs of its orders until it is stopped. Any number of
// processes on this machine can run it at the same time.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := dirstore.Open(ctx, "/srv/ids", &dirstore.Options{Create: true}) // yours to write
	if err != nil {
		fmt.Println(err)
		return
	}
	items := make(chan string) // that customers order
	if err := takeOrders(ctx, store, items); err != nil {
		fmt.Println(err)
	}
}

func takeOrders(ctx context.Context, store grant.Store, items <-chan string) error {
	orders, err := sequencer.Open(ctx, store, "orders", &sequencer.Options{Layout: firn.Default()})
	if err != nil {
		return err
	}
	defer orders.Close(ctx) // gives the node ID back, also after a signal
	for {
		select {
		case item := <-items:
			id, err := orders.Next(ctx) // greater than every ID of this process
			if err != nil {
				return err
			}
			parts, err := firn.Default().Decompose(id)
			fmt.Println(item, id, parts.Time, parts.Node, parts.Seq, err)
		case <-ctx.Done():
			return nil
		}
	}
}
