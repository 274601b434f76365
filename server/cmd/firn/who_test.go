package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/operate/issued"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
)

// who runs firn who for an ID, and returns what it prints as JSON.
func who(t *testing.T, code int, args string) (found issued.Answer) {
	t.Helper()
	got, out := runLine(t, "who --json "+args)
	if err := json.Unmarshal([]byte(out), &found); err != nil || got != code {
		t.Fatalf("who %s: exit %d, %s", args, got, out)
	}
	return found
}

// TestWho takes IDs over each protocol, and asks who received them.
func TestWho(t *testing.T) {
	dir := t.TempDir()
	token, hash := auth.NewToken()
	tokens, log := filepath.Join(dir, "tokens"), filepath.Join(dir, "log")
	must.Do(t, os.WriteFile(tokens, fmt.Appendf(nil, "tokens: [{name: shop, role: generate, sha256: %s}]", hash), 0o600))
	r := startServe(t, nil, "--node", "3", "--tokens", tokens, "--issue-log", log, "--advertise", "ids-1:3476")
	address := strings.TrimPrefix(r.url, "http://")
	ids := make(map[string]string) // by request, or protocol

	_, _, body := r.post(t, "orders", "Authorization", "Bearer "+token, "X-Request-Id", "over-http", "Accept", "text/plain")
	ids["over-http"] = strings.TrimSpace(body)

	conn := must.Get(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token, "firn-request-id", "over-grpc")
	answer := must.Get(firnv1.NewIDsClient(conn).Next(ctx, &firnv1.NextRequest{Sequencer: "orders", Count: 3}))(t)
	ids["over-grpc"] = fmt.Sprint(answer.GetIds()[1])

	nc := must.Get(net.Dial("tcp", address))(t)
	defer nc.Close()
	must.Get(fmt.Fprintf(nc, "AUTH %s\r\nNEXT orders\r\n%s", token, strings.Repeat("NEXT invoices\r\n", 50)))(t)
	buf := make([]byte, 64<<10)
	text := ""
	for strings.Count(text, "\r\n") < 1+2*51 {
		n := must.Get(nc.Read(buf))(t)
		text += string(buf[:n])
	}
	lines := strings.Split(text, "\r\n")
	ids["RESP"], ids["many over RESP"] = lines[2], lines[2+2*50]

	r.stop()
	if text := string(must.Get(os.ReadFile(log))(t)); !strings.Contains(text, `"step":"1","count":3}`) {
		t.Errorf("the run of three IDs is not as over HTTP:\n%s", text)
	}
	for request, id := range ids {
		found := who(t, 0, id+" --log "+log)
		x := found.Issued[0]
		if found.Verdict != issued.Issued || x.Client != "shop" || x.Server != "ids-1:3476" || x.Address == "" ||
			strings.HasPrefix(request, "over") && x.Request != request {
			t.Errorf("%s over %s: %+v", id, request, found)
		}
	}
	if found := who(t, 1, ids["RESP"]+" --sequencer invoices --log "+log); found.Verdict != issued.NotIssued || !strings.Contains(found.Reason, "orders") {
		t.Errorf("an ID of another sequencer: %+v", found)
	}
	if code, out := runLine(t, "who 1 --log "+filepath.Join(dir, "absent")); code != exitFailed {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestWhoForwarded: a forwarded ID is in the log of the server that made it,
// and of the one that has passed it on to the client.
func TestWhoForwarded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	has, asks := twoServers(t, "--issue-log", path)
	_, _, body := asks.post(t, "orders", "Accept", "text/plain", "X-Request-Id", "forwarded")
	asks.stop()
	has.stop()
	found := who(t, 0, strings.TrimSpace(body)+" --log "+path)
	if len(found.Issued) != 2 || found.Issued[0].Log == found.Issued[1].Log || found.Issued[0].Request != "forwarded" || found.Issued[1].Request != "forwarded" {
		t.Errorf("%+v", found)
	}
}
