package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// TestAudit: each change of a sequencer gives one line that names the client,
// over each protocol and in the console, and also if it was made by using the
// name.
func TestAudit(t *testing.T) {
	file, token := tokensOf(t)
	log := new(nettest.Output)
	_, address := served(t, Config{TokenFile: file, Logger: slog.New(requestid.NewHandler(slog.NewJSONHandler(log, nil)))})

	ask := func(method, path, headers, body string) string {
		t.Helper()
		_, answer := send(t, address, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s",
			method, path, headers, len(body), body))
		return answer
	}
	web := func(method, path string) {
		t.Helper()
		ask(method, path, "Authorization: Bearer "+token+"\r\nX-Request-ID: web-1\r\n", "")
	}
	visitor := "Accept: text/html\r\nContent-Type: application/x-www-form-urlencoded\r\n"
	post := func(path, form string) {
		t.Helper()
		answer := ask("POST", path, visitor, form)
		if !strings.Contains(answer, "Location: ") {
			t.Fatalf("POST %s: %s", path, answer)
		}
		if _, cookie, ok := strings.Cut(answer, "Set-Cookie: "); ok {
			cookie, _, _ = strings.Cut(cookie, ";")
			visitor += "Cookie: " + cookie + "\r\n"
		}
	}
	conn := nettest.DialGRPC(t, address)
	admin := firnv1.NewSequencersClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token, "x-request-id", "rpc-1")

	var want []string
	expect := func(do, sequencer, result string, act func()) {
		t.Helper()
		act()
		want = append(want, fmt.Sprintf("%s %s %s by a", do, sequencer, result))
	}
	expect("create", "put", "done", func() { web("PUT", "/v1/sequencers/put") })
	expect("create", "put", "unchanged", func() { web("PUT", "/v1/sequencers/put") })
	expect("create", "put", "failed", func() {
		if _, err := admin.Create(ctx, &firnv1.CreateRequest{Name: "put", Layout: "twitter"}); err == nil {
			t.Error("a sequencer was created with another layout")
		}
	})
	expect("detach", "put", "done", func() { web("POST", "/v1/sequencers/put/detach") })
	expect("attach", "put", "done", func() { web("POST", "/v1/sequencers/put/attach") })
	expect("destroy", "none", "failed", func() { web("DELETE", "/v1/sequencers/none") })
	web("GET", "/v1/sequencers")
	expect("create", "rpc", "done", func() { must.Get(admin.Create(ctx, &firnv1.CreateRequest{Name: "rpc"}))(t) })
	expect("destroy", "rpc", "done", func() { must.Get(admin.Destroy(ctx, &firnv1.DestroyRequest{Name: "rpc"}))(t) })
	expect("create", "by-http", "done", func() { web("POST", "/v1/sequencers/by-http/next") })
	web("POST", "/v1/sequencers/by-http/next")
	expect("create", "by-rpc", "done", func() {
		must.Get(firnv1.NewIDsClient(conn).Next(ctx, &firnv1.NextRequest{Sequencer: "by-rpc"}))(t)
	})
	expect("create", "by-resp", "done", func() { talk(t, address, "AUTH "+token+"\r\nNEXT by-resp\r\n") })
	post("/sign-in", "token="+token)
	expect("create", "seen", "done", func() { post("/create", "name=seen") })
	expect("create", "made", "done", func() { post("/make", "name=made") })
	expect("detach", "seen", "done", func() { post("/sequencers/seen/detach", "confirm=seen") })

	var got []string
	for line := range strings.Lines(log.String()) {
		var row struct {
			Level, Msg, Audit, Result, Sequencer, Principal, Address string
			ID                                                       string `json:"request_id"`
		}
		must.Do(t, json.Unmarshal([]byte(line), &row))
		if row.Audit == "" {
			continue
		}
		got = append(got, fmt.Sprintf("%s %s %s by %s", row.Audit, row.Sequencer, row.Result, row.Principal))
		if host, _, err := net.SplitHostPort(row.Address); err != nil || host != "127.0.0.1" || row.Level != "INFO" || row.Msg != "sequencer change" || row.ID == "" && row.Sequencer != "by-resp" {
			t.Errorf("%s: want level INFO, the message of changes, the client's address and the ID of the request", line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("audit lines are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
