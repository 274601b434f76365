package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/service"
)

// BenchmarkServer measures a request over TCP on loopback, client and server
// together. The first row is a net/http handler that writes as many bytes: the
// minimum.
func BenchmarkServer(b *testing.B) {
	s, err := service.NewStatic(service.StaticConfig{Layout: firn.MustParseLayout(fast)})
	if err != nil {
		b.Fatal(err)
	}
	const path = "/v1/sequencers/orders/next"
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = contentTypes[mediaJSON]
		io.WriteString(w, "{\"ids\":[\"117411959208411136\"]}\n")
	})
	h := NewHandler(Config{Backend: s})
	for _, row := range []struct {
		name    string
		handler http.Handler
		target  string
		count   int
	}{
		{"net/http", bare, "/", 1},
		{"json", h, path, 1},
		{"text", h, path + "?format=dec", 1},
		{"json/1000", h, path + "?count=1000", 1000},
		{"json/100000", h, path + "?count=100000", 100_000},
		{"raw/100000", h, path + "?count=100000&format=raw", 100_000},
	} {
		b.Run(row.name, func(b *testing.B) {
			server := httptest.NewUnstartedServer(nil)
			server.Config = NewServer(NewHandler(Config{Backend: s}))
			server.Config.Handler = row.handler
			server.Start()
			defer server.Close()
			request := []byte("GET " + row.target + " HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n")
			if row.name == "text" {
				request = []byte("GET " + row.target + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\nUser-Agent: bench\r\n\r\n")
			}
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				in := bufio.NewReaderSize(conn, 64<<10)
				for pb.Next() {
					conn.Write(request)
					resp, err := http.ReadResponse(in, nil)
					if err != nil || resp.StatusCode != 200 {
						b.Error(resp, err)
						return
					}
					io.Copy(io.Discard, resp.Body)
				}
			})
			b.ReportMetric(float64(b.N*row.count)/b.Elapsed().Seconds()/1e6, "M_IDs/s")
		})
	}
}
