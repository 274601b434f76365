// Command lost-lease shows what a sequencer does when it cannot renew its node
// ID: two processes share a store, the first one loses its connection, and the
// second one acquires the same node ID. CosId.java does the same with CosId.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// connection is the way of one process to the store.
type connection struct {
	grant.Store
	cut atomic.Bool
}

var errCut = errors.New("no route to the store")

func (c *connection) Get(ctx context.Context, key string) ([]byte, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	return c.Store.Get(ctx, key)
}

func (c *connection) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if c.cut.Load() {
		return false, errCut
	}
	return c.Store.CAS(ctx, key, old, next)
}

func (c *connection) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Store.List(ctx, prefix, yield)
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ahead := 5 * time.Millisecond
	config := &sequencer.Options{
		Layout:      firn.Default(),
		MaxAhead:    &ahead,
		Window:      2 * time.Second,
		WaitForNode: true,
		Nodes:       &grant.NodeRange{Lo: 0, Hi: 0}, // both processes need node ID 0
	}
	var store memstore.Store
	toStore := &connection{Store: &store}
	first, err := sequencer.Open(ctx, toStore, "orders", config)
	if err != nil {
		return err
	}
	fmt.Println("process 1 has node ID", first.Status().Node)
	toStore.cut.Store(true)
	fmt.Println("process 1 is cut off from the store")

	var byFirst []firn.ID
	for {
		id, err := first.TryNext()
		var full *firn.WaitError // the tick's IDs are used up
		if err != nil && !errors.As(err, &full) {
			fmt.Printf("process 1 stops: %v (%v)\n", err, first.Status().Err)
			break
		}
		if err == nil {
			byFirst = append(byFirst, id)
		}
		time.Sleep(time.Millisecond)
	}

	second, err := sequencer.Open(ctx, &store, "orders", config)
	if err != nil {
		return err
	}
	defer second.Close(ctx)
	made := make(map[firn.ID]bool)
	twice := 0
	for range 2000 {
		if id, err := first.TryNext(); err == nil {
			byFirst = append(byFirst, id)
		}
		id, err := second.Next(ctx)
		if err != nil {
			return err
		}
		made[id] = true
		time.Sleep(time.Millisecond)
	}
	for _, id := range byFirst {
		if made[id] {
			twice++
		}
	}
	fmt.Println("process 2 has node ID", second.Status().Node)
	fmt.Printf("Firn: process 1 made %d IDs, process 2 made %d: %d IDs exist twice\n", len(byFirst), len(made), twice)
	if twice > 0 {
		return errors.New("the sequencer repeated an ID")
	}
	return nil
}
