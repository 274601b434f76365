package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
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

	web := func(method, path string) {
		t.Helper()
		r, _ := http.NewRequest(method, "http://"+address+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-Request-ID", "web-1")
		resp := must.Get(http.DefaultClient.Do(r))(t)
		resp.Body.Close()
	}
	conn := nettest.DialGRPC(t, address)
	admin := firnv1.NewSequencersClient(conn)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token, "x-request-id", "rpc-1")
	call := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	visitor := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var session []*http.Cookie
	post := func(path string, form url.Values) {
		t.Helper()
		r, _ := http.NewRequest("POST", "http://"+address+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", "text/html")
		for _, c := range session {
			r.AddCookie(c)
		}
		resp := must.Get(visitor.Do(r))(t)
		resp.Body.Close()
		if resp.StatusCode != http.StatusSeeOther {
			t.Fatalf("POST %s: %s", path, resp.Status)
		}
		if session == nil {
			session = resp.Cookies()
		}
	}

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
	expect("create", "rpc", "done", func() { _, err := admin.Create(ctx, &firnv1.CreateRequest{Name: "rpc"}); call(err) })
	expect("destroy", "rpc", "done", func() { _, err := admin.Destroy(ctx, &firnv1.DestroyRequest{Name: "rpc"}); call(err) })
	expect("create", "by-http", "done", func() { web("POST", "/v1/sequencers/by-http/next") })
	web("POST", "/v1/sequencers/by-http/next")
	expect("create", "by-rpc", "done", func() {
		_, err := firnv1.NewIDsClient(conn).Next(ctx, &firnv1.NextRequest{Sequencer: "by-rpc"})
		call(err)
	})
	expect("create", "by-resp", "done", func() {
		c, err := net.Dial("tcp", address)
		call(err)
		defer c.Close()
		fmt.Fprintf(c, "AUTH %s\r\nNEXT by-resp\r\nQUIT\r\n", token)
		_, err = new(bytes.Buffer).ReadFrom(c)
		call(err)
	})
	post("/sign-in", url.Values{"token": {token}})
	expect("create", "seen", "done", func() { post("/create", url.Values{"name": {"seen"}}) })
	expect("create", "made", "done", func() { post("/make", url.Values{"name": {"made"}}) })
	expect("detach", "seen", "done", func() { post("/sequencers/seen/detach", url.Values{"confirm": {"seen"}}) })

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
