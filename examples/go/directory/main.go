// Command directory makes IDs with node IDs from a directory.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/sequencer"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	store, err := dirstore.Open(ctx, "ids", &dirstore.Options{Create: true})
	if err != nil {
		return err
	}
	orders, err := sequencer.Open(ctx, store, "orders", &sequencer.Options{Layout: firn.Default()})
	if err != nil {
		return err
	}
	defer orders.Close(ctx) // gives the node ID back, also after a signal

	id, err := orders.Next(ctx) // greater than every ID of this process
	fmt.Println(id)
	return err
}
