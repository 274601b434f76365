package sequencer_test

import (
	"context"
	"fmt"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/sequencer"
)

// A program that makes the IDs of its orders. Any number of processes on this
// machine can run it at the same time.
func Example() {
	run := func(ctx context.Context) error {
		store, err := dirstore.Open(ctx, "/srv/ids", &dirstore.Options{Create: true}) // yours to write
		if err != nil {
			return err
		}
		orders, err := sequencer.Open(ctx, store, "orders", &sequencer.Options{Layout: firn.Default()})
		if err != nil {
			return err
		}
		defer orders.Close(ctx) // gives the node ID back

		id, err := orders.Next(ctx) // greater than every ID that orders has made before
		if err != nil {
			return err
		}
		parts, err := firn.Default().Decompose(id)
		fmt.Println(id, parts.Time, parts.Node, parts.Seq, err)
		return nil
	}
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
	}
}
