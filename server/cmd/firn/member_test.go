package main

import (
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// TestMemberList: the list of servers and the list of node IDs distinguish two
// servers of one host.
func TestMemberList(t *testing.T) {
	t.Parallel()
	store := testStore(t)
	var addresses []string
	for range 2 {
		r := startServe(t, nil, "--store", store)
		if status, _, body := r.post(t, "orders"); status != 200 {
			t.Fatal(status, body)
		}
		addresses = append(addresses, strings.TrimPrefix(r.url, "http://"))
	}
	// A server writes what it holds soon after it has taken it.
	shows := func(command string) bool {
		code, out := runLine(t, command+" --store "+store)
		return code == exitFine && strings.Count(out, addresses[0]) == 1 && strings.Count(out, addresses[1]) == 1
	}
	for _, command := range []string{"node list", "node list --json", "member list", "member list --json"} {
		must.Await(t, func() bool { return shows(command) }, "%s has the servers %q", command, addresses)
	}
}
