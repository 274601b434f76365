// Command etcd makes IDs with node IDs from etcd.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/etcdstore"
	"github.com/firnid/firn/sequencer"
)

func main() {
	if err := run(context.Background(), strings.Split(os.Getenv("ETCD_ENDPOINTS"), ",")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, endpoints []string) error {
	store, err := etcdstore.Open(ctx, &etcdstore.Options{Endpoints: endpoints})
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
