package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server"
	"github.com/firnid/firn/server/stores"
)

// A program that embeds the server opens a store, and serves on a listener of
// its own.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "firn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := stores.Open(ctx, "dir:"+filepath.Join(dir, "store")+"?create=true&volatile=true")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	srv, err := server.New(server.Config{
		Store:          store,
		Sequencers:     sequencer.Options{Layout: firn.MustParseLayout("twitter")},
		RequestTimeout: 5 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(server.Listener{Listener: l}) }()

	resp, err := http.Get("http://" + l.Addr().String() + "/v1/sequencers/orders/next?count=3")
	if err != nil {
		log.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Status, strings.Count(string(answer), ","), "commas")

	if err := srv.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	if err := <-served; err != nil {
		log.Fatal(err)
	}
	// Output: 200 OK 2 commas
}
