// Command etcd makes IDs with node IDs from etcd.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

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
	defer func() { // ctx may have ended, as on a signal: Close needs one that has not
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		orders.Close(late) // gives the node ID back
	}()

	id, err := orders.Next(ctx)
	fmt.Println(id)
	return err
}
