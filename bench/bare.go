package main

import (
	"net/http"
	"strconv"
	"sync/atomic"
)

// serveBare serves the bare handler with an unmodified net/http.
func serveBare(address string) error { return http.ListenAndServe(address, bareHandler()) }

// bareHandler returns the reference for HTTP: its answer has as many bytes as
// that of next.
func bareHandler() http.Handler {
	var last atomic.Uint64
	last.Store(117744719096483840)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/sequencers/{name}/next", func(w http.ResponseWriter, _ *http.Request) {
		b := append(make([]byte, 0, 64), `{"ids":["`...)
		b = append(strconv.AppendUint(b, last.Add(1), 10), "\"]}\n"...)
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(b) // a client that is gone does not matter
	})
	return mux
}
