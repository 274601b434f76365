//go:build linux || darwin

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestLimits: the limits of the environment hold in every protocol.
func TestLimits(t *testing.T) {
	r := startServe(t, map[string]string{
		"FIRN_LIMITS_IDS_PER_CALL": "10", "FIRN_LIMITS_BODY": "1KiB", "FIRN_LIMITS_HEADER": "4KiB", "FIRN_LIMITS_READ_TIMEOUT": "1s",
		"FIRN_LIMITS_RESP_IDLE_TIMEOUT": "1s", "FIRN_LIMITS_IDLE_TIMEOUT": "1s",
	})
	address := strings.TrimPrefix(r.url, "http://")
	// A connection for each request: an idle one may be ending.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	web := func(method, path, body string, header ...string) (int, string) {
		t.Helper()
		q, _ := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
		for i := 0; i+1 < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		resp := must.Get(client.Do(q))(t)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	if status, text := web("POST", "/v1/sequencers/orders/next?count=10", ""); status != 200 {
		t.Errorf("10 IDs: status %d, %s", status, text)
	}
	if status, text := web("POST", "/v1/sequencers/orders/next?count=11", ""); status != 400 || !strings.Contains(text, "from 1 to 10") {
		t.Errorf("11 IDs: status %d, %s", status, text)
	}
	if status, text := web("PUT", "/v1/sequencers/made", strings.Repeat(" ", 1025)); status != 400 || !strings.Contains(text, "1024 bytes") {
		t.Errorf("a body of 1025 bytes: status %d, %s", status, text)
	}
	if status, _ := web("GET", "/healthz", "", "X-Long", strings.Repeat("x", 9<<10)); status != 431 {
		t.Errorf("a header of 9 KiB: status %d, want 431", status)
	}

	conn := must.Get(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer conn.Close()
	ids := firnv1.NewIDsClient(conn)
	if _, err := ids.Next(t.Context(), &firnv1.NextRequest{Count: 11}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("11 IDs of gRPC: %v", err)
	}
	if _, err := ids.Next(t.Context(), &firnv1.NextRequest{Sequencer: strings.Repeat("x", 2<<10)}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message of 2 KiB: %v", err)
	}

	// What begins is to end within the read timeout, and what is idle is closed.
	var all sync.WaitGroup
	for input, want := range map[string]string{
		"*1\r\n$2000\r\n":                        "-ERR Protocol error: invalid bulk length: $ must be followed by the bytes of an argument, up to 1024, and CR LF",
		"*2\r\n$4\r\nPI":                         "-ERR Protocol error: timeout: a command must arrive completely within 1s",
		"NEXT orders 11\r\n":                     "-ERR bad-parameter: count is \"11\": it must be a number from 1 to 10",
		"PING\r\n":                               "+PONG\r\n",
		"GET /healthz HTTP/1.1\r\nHost: local":   "", // the header has no end
		"GET /healthz HTTP/1.1\r\nHost: a\r\n\r": "",
	} {
		c := must.Get(net.Dial("tcp", address))(t)
		all.Go(func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(nettest.Patience))
			fmt.Fprint(c, input)
			text, err := io.ReadAll(bufio.NewReader(c)) // until the server closes it
			if err != nil && want != "" || want != "" && !strings.HasPrefix(string(text), want) || strings.Contains(string(text), " 200 ") {
				t.Errorf("%q: %q, %v, want %q", input, text, err, want)
			}
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Errorf("%q: the connection stays open", input)
			}
		})
	}
	all.Wait()
}
