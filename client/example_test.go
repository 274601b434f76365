package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/client/clienttest"
	"github.com/firnid/firn/grant"
)

// A program that gets the IDs of its orders from two servers.
func Example() {
	ctx := context.Background()
	one, _, stop := startServer(1)
	defer stop()
	two, _, stop := startServer(2)
	defer stop()

	c, err := client.New(client.Config{Servers: []string{one, two}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	orders := c.Sequencer("orders")

	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	seen := make(map[firn.ID]bool)
	for range 1000 {
		id, err := orders.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		seen[id] = true
	}
	fmt.Println(len(seen), "IDs")
	// Output: 1000 IDs
}

// An error returned by a server, and how to handle it.
func ExampleError() {
	server, handler, stop := startServer(1)
	defer stop()
	handler.FailNext(1, client.KindDetached)

	c, err := client.New(client.Config{Servers: []string{server}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(context.Background())
	_, err = c.Sequencer("orders").Next(context.Background())
	if said, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(said.Status, said.Kind, said.Detail)
	}
	fmt.Println(errors.Is(err, grant.ErrDetached))
	// Output:
	// 409 detached the test wants this request to fail
	// true
}

// startServer starts a server with a node ID.
func startServer(node uint64) (string, *clienttest.Handler, func()) {
	h, err := clienttest.NewHandler(&clienttest.Options{Node: node})
	if err != nil {
		panic(err)
	}
	s := httptest.NewServer(h)
	return s.URL, h, s.Close
}
