package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestMemberList: the list of servers and the list of node IDs distinguish two
// servers of one host.
func TestMemberList(t *testing.T) {
	store := testStore(t)
	list := func(args ...string) string {
		a, stdout, stderr := serveApp(t)
		if code := run(t.Context(), a, append(args, "--store", store)); code != exitFine {
			t.Fatalf("%q: exit %d: %s", args, code, stderr)
		}
		return stdout.String()
	}
	want := make(map[string]uint64) // node IDs of addresses
	for range 2 {
		url := startServe(t, nil, "--store", store).url
		resp, err := http.Post(url+"/v1/sequencers/orders/next", "", nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
		want[strings.TrimPrefix(url, "http://")] = 0
	}
	// A server writes what it holds soon after it has taken it.
	for deadline := time.Now().Add(nettest.Patience); ; time.Sleep(50 * time.Millisecond) {
		held := 0
		for line := range strings.Lines(list("member", "list", "--json")) {
			var m members.Member
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if _, ok := want[m.Address]; !ok {
				t.Errorf("there is no server at %q", m.Address)
			}
			for _, h := range m.Holds {
				want[m.Address] = h.Node
				held++
			}
		}
		if held == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d node IDs are held, want 2", held)
		}
	}
	shown := 0
	for line := range strings.Lines(list("node", "list", "--json")) {
		var n struct {
			Server string
			Node   uint64
		}
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		shown++
		if node, ok := want[n.Server]; !ok || node != n.Node {
			t.Errorf("node ID %d is of server %q, want those of %v", n.Node, n.Server, want)
		}
	}
	if shown != 2 {
		t.Errorf("%d node IDs are listed, want 2", shown)
	}
	for _, args := range [][]string{{"member", "list"}, {"node", "list"}} {
		text := list(args...)
		for address := range want {
			if !strings.Contains(text, address) {
				t.Errorf("%q does not show %s:\n%s", args, address, text)
			}
		}
	}
}
