package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestNodeListServers: the list of node IDs distinguishes two servers of one
// host.
func TestNodeListServers(t *testing.T) {
	store := testStore(t)
	want := make(map[string]bool)
	for range 2 {
		url := startServe(t, nil, "--store", store).url
		resp, err := http.Post(url+"/v1/sequencers/orders/next", "", nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
		want[strings.TrimPrefix(url, "http://")] = true
	}
	// A server writes what it holds soon after it has taken it.
	for deadline := time.Now().Add(nettest.Patience); ; time.Sleep(50 * time.Millisecond) {
		a, stdout, stderr := serveApp(t)
		if code := run(t.Context(), a, []string{"node", "list", "--json", "--store", store}); code != exitFine {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		shown := make(map[string]bool)
		for line := range strings.Lines(stdout.String()) {
			var n nodeJSON
			if err := json.Unmarshal([]byte(line), &n); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if n.Server != "" {
				shown[n.Server] = true
			}
		}
		if maps.Equal(shown, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the servers of the node IDs are %v, want %v", shown, want)
		}
	}
}
