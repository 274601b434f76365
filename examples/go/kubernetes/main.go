// Command kubernetes makes IDs with node IDs from the cluster's API server.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/firnid/firn"
	"github.com/firnid/firn/kubestore"
	"github.com/firnid/firn/sequencer"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	store, err := kubestore.Open(ctx, nil) // as kubectl, or a pod's service account
	if err != nil {
		return err
	}
	defer store.Close()
	orders, err := sequencer.Open(ctx, store, "orders", &sequencer.Options{Layout: firn.Default()})
	if err != nil {
		return err
	}
	defer orders.Close(ctx) // gives the node ID back, also after a signal

	id, err := orders.Next(ctx)
	fmt.Println(id)
	return err
}
