package main

import (
	"bytes"
	"compress/gzip"
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

// TestWhoArguments: whatever a shell makes of --log logs/*, no verdict comes
// from a part of the logs. An issue log is recognized by its lines, not by its
// name.
func TestWhoArguments(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	line := func(log string, n, first int) string {
		return fmt.Sprintf(`{"time":"2026-12-01T00:00:00Z","log":%q,"n":%d,"sequencer":"orders","layout":"default",`+
			`"runs":[{"first":"%d","step":1,"count":9}],"client":%q}`+"\n", log, n, first, log)
	}
	write := func(name, text string, compressed bool) {
		t.Helper()
		var b bytes.Buffer
		if z := gzip.NewWriter(&b); compressed {
			must.Get(z.Write([]byte(text)))(t)
			must.Do(t, z.Close())
		} else {
			b.WriteString(text)
		}
		must.Do(t, os.WriteFile(name, b.Bytes(), 0o600))
	}
	write("a", line("one", 1, 100), false)
	write("b", line("two", 1, 200), false)
	write("c.gz", line("three", 1, 300), true)
	write("1234567890", "cut off\"}\n"+line("four", 2, 400), false) // an ID, by its name
	write("empty", "", false)
	write("list", "105\n205\n", false)
	const halfPastFour = 121105494835212288 // of that day
	four := strings.Replace(line("six", 2, halfPastFour-1_800_000<<22), "T00:00", "T04:00", 1)
	write("six", `{"time":"2026-12-01T00:00:00Z","log":"six","n":1,"event":"start","server":"ids-6"}`+"\n"+four+
		`{"time":"2026-12-01T05:00:00Z","log":"six","n":3,"event":"end","server":"ids-6"}`+"\n", false)
	write("cut.gz", line("seven", 1, 700), true)
	must.Do(t, os.Truncate("cut.gz", must.Get(os.Stat("cut.gz"))(t).Size()-4))
	write("late", `{"time":"2026-12-01T06:00:00Z","log":"late","n":1,"event":"start","server":"ids-7"}`+"\n"+
		`{"time":"2026-12-01T07:00:00Z","log":"late","n":2,"event":"end","server":"ids-7"}`+"\n", false)
	write("js", strings.NewReplacer(`"default"`, `"js53"`, `"orders"`, `"web"`).Replace(line("eight", 1, 800)), false)
	write("passed", strings.Replace(line("nine", 1, 900), "}\n", `,"forwarded":true}`+"\n", 1), false)
	write("cut5.gz", "\x1f\x8b\b\b\a", false)
	write("other.xz", "\xfd7zXZ\x00\n\x00\n", false)
	write("other.gz", "not a log\n", true)
	for _, test := range []struct {
		args string
		code int
		want []string // that is printed
	}{
		{"305 --log a b c.gz 1234567890 empty", 0, []string{"305  issued to three"}},
		{"--log a b c.gz 1234567890 405 305", 0, []string{"405  issued to four", "305  issued to three"}},
		{"list --log a b", 0, []string{"105  issued to one", "205  issued to two"}},
		{"121105494835212288 --log six", exitNo, []string{"not issued by these servers while the log covers it: ids-6\n", "layout default is 2026-12-01T04:30"}},
		{"121105494835212288 --log six late", exitNo, []string{"does not cover its time", "server ids-7 has no log before", "add --complete if"}},
		{"121105494835212288 --log six late --complete", exitNo, []string{"not issued by these servers while the log covers it: ids-6, ids-7\n"}},
		{"121105494839410688 --log six", exitNo, []string{"no line has its node ID, 4: if another server made it"}},
		{"117693951758346 --log six js", exitNo, []string{"in layout default is", "in layout js53 is", "--sequencer NAME"}},
		{"805 --log six js --sequencer web", 0, []string{"805  issued to eight"}},
		{"117693951758346 --log six js --sequencer web", exitNo, []string{"does not cover its time\n                 its time in layout js53 is"}},
		{"905 --log passed", 0, []string{"905  issued to nine", "another server, for a client of its own"}},
		{"305 --log c.gz cut5.gz", 0, []string{"305  issued to three", "cut5.gz: the end of"}},
		{"305 705 --log cut.gz c.gz", 0, []string{"305  issued to three", "705  issued to seven", "cut.gz: the end of"}},
		{"121105494835212288 --log a", exitNo, []string{"the log does not cover its time\n", "server (unknown) has no log after"}},
		{"notanid-305-1 --log a", exitNo, []string{"is not an ID"}},
		{"305 --log empty", exitNo, []string{"the logs have no lines"}},
		{"121105494835212288 --log js", exitNo, []string{"it is no ID of layout js53"}},
		{"700 --log js --sequencer wbe", exitNo, []string{"no lines of sequencer wbe, only of web"}},
		{"a b --log c.gz", exitMisuse, []string{"the ID is not given"}},
		{"305 - --log a", exitMisuse, []string{"line 1 is a line of an issue log", "--log -"}},
		{"305 --log a other.xz", exitMisuse, []string{"other.xz has no IDs, and is not an issue log"}},
		{"305 --log a other.gz", exitMisuse, []string{"other.gz has no IDs, and is not an issue log"}},
		{"305 --log a absent.log", exitFailed, []string{"absent.log"}},
	} {
		a, stdout, stderr := serveApp(t)
		a.stdin = strings.NewReader(line("five", 1, 500))
		code := run(t.Context(), a, append([]string{"who"}, strings.Fields(test.args)...))
		out := stdout.String() + stderr.String()
		for _, want := range test.want {
			if code != test.code || !strings.Contains(out, want) || code > exitNo && stdout.String() != "" {
				t.Errorf("who %s: exit %d, want %d and %q:\n%s", test.args, code, test.code, want, out)
			}
		}
	}
}
