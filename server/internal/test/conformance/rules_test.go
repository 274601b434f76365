//go:build unix

package conformance

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A reply is how a server of a rule answers one request.
type reply func(ids *counter, request *http.Request, n int) []byte

// Replies.
var (
	good   reply = (*counter).whole
	silent reply = func(*counter, *http.Request, int) []byte { return nil }
	cut    reply = func(ids *counter, request *http.Request, n int) []byte {
		data := ids.whole(request, n)
		return data[:len(data)-1]
	}
	closed reply = func(*counter, *http.Request, int) []byte { return []byte{} }
	html   reply = func(*counter, *http.Request, int) []byte { return answer("text/html", 2, []byte("hi")) }
	twice  reply = func(*counter, *http.Request, int) []byte {
		return answer("application/octet-stream", 24, []byte(strings.Repeat("abcdefgh", 3)))
	}
)

// problem answers with a status, a kind of problem, and perhaps a header.
func problem(status int, kind, header string) reply {
	if header != "" {
		header += "\r\n"
	}
	return func(*counter, *http.Request, int) []byte {
		body := fmt.Sprintf(`{"type":"urn:firn:problem:%s","title":"T","status":%d,"detail":"no room"}`, kind, status)
		return fmt.Appendf(nil, "HTTP/1.1 %d T\r\nContent-Type: application/problem+json\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s",
			status, header, len(body), body)
	}
}

// atMost answers batch-too-large to requests for more than n IDs.
func atMost(limit int) reply {
	return func(ids *counter, request *http.Request, n int) []byte {
		if n > limit {
			return problem(400, "batch-too-large", "")(ids, request, n)
		}
		return good(ids, request, n)
	}
}

// A rule is a case of the table in docs/languages.md: what a client does with
// servers that answer in a certain way, and what its calls return.
type rule struct {
	name string

	// The answers of each server, in order; the last one is repeated. A server
	// without answers refuses connections.
	servers [][]reply
	scheme  string // http if empty; with tls, the server has an untrusted certificate
	proxy   bool   // the server is a proxy of the environment, and not that of the client
	args    []string
	token   string // content of the token file
	calls   int    // 1 if 0
	until   []int  // calls follow until the first server was asked for as many IDs, in this order
	command string // "take 3" if empty

	want   string          // ok; or the class of the error, or ends, and words of the text
	asked  []int           // how many requests reach each server, if it is certain
	spared bool            // some servers get none: a slow answer makes a client ask one more
	counts []int           // for how many IDs the first requests are
	most   int             // for how many the later ones are at most, if not 0
	gaps   []time.Duration // least times between the first requests
	bearer string          // the token of requests
}

var patient = []string{"--patient"}

const pause = 125 * time.Millisecond // the shortest after a failure

var rules = []rule{
	// A failure that may pass: the same server is asked again after a pause.
	{name: "a pause after each failure", servers: [][]reply{{cut, closed, problem(503, "draining", ""), good}}, args: patient,
		want: "ok", asked: []int{4}, gaps: []time.Duration{pause, 2 * pause, 4 * pause}},
	{name: "failures that may pass", servers: [][]reply{{problem(408, "", ""), good, problem(429, "busy", ""), good,
		problem(502, "", ""), good, problem(503, "store-unavailable", ""), good, problem(504, "", ""), good}}, args: patient,
		calls: 5, want: "ok", asked: []int{10}, gaps: []time.Duration{pause, 0, pause, 0, pause, 0, pause, 0, pause}},
	{name: "a timeout", servers: [][]reply{{silent, good}}, args: []string{"--timeout", "1"}, want: "ok"},

	// While one server works, calls succeed.
	{name: "a server that always fails", servers: [][]reply{{problem(503, "draining", "")}, {good}}, args: patient, until: []int{3, 1}, want: "ok"},
	{name: "a server that works again", servers: [][]reply{{problem(503, "draining", ""), good}, {good}}, args: patient, until: []int{3, 3}, want: "ok"},
	{name: "a server that refuses connections", servers: [][]reply{nil, {good}}, args: patient, calls: 30, want: "ok"},
	{name: "a server that refuses the token", servers: [][]reply{{problem(401, "unauthorized", "")}, {good}}, args: patient, until: []int{3, 1}, want: "ok"},
	{name: "a server that does not answer", servers: [][]reply{{silent}, {good}}, until: []int{3}, want: "ok"},

	// Pauses that servers ask for.
	{name: "Retry-After of a second", servers: [][]reply{{problem(503, "busy", "Retry-After: 1"), good}}, want: "ok",
		asked: []int{2}, gaps: []time.Duration{time.Second}},
	{name: "Retry-After above the patience", servers: [][]reply{{problem(503, "busy", "Retry-After: 3600")}}, calls: 3,
		want: "Unavailable 503 busy: no room", asked: []int{1}},
	{name: "Retry-After of two servers", servers: [][]reply{{problem(503, "busy", "Retry-After: 3600")}, {problem(502, "busy", "Retry-After: 3600")}},
		calls: 3, want: "Unavailable 503 502", asked: []int{1, 1}},
	{name: "a limit of the client", servers: [][]reply{{problem(429, "rate-limited", "Retry-After: 1"), good}}, want: "ok",
		asked: []int{2}, gaps: []time.Duration{time.Second}},
	{name: "a limit above the patience", servers: slices.Repeat([][]reply{{problem(429, "rate-limited", "Retry-After: 3600")}}, 8),
		calls: 3, want: "Unavailable 429 rate-limited: no room", spared: true},
	{name: "Retry-After of something else", servers: [][]reply{{
		problem(503, "busy", "Retry-After: "+time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), good,
		problem(503, "busy", "Retry-After: soon"), good, problem(503, "busy", "Retry-After: -3600"), good,
		problem(503, "busy", "Retry-After: 3600.5"), good, problem(503, "busy", "Retry-After: 3600 s"), good}},
		calls: 5, want: "ok", asked: []int{10}},

	// A refusal: each server is asked once in a call.
	{name: "refusals", servers: [][]reply{refusals, refusals}, calls: len(refusals), want: "Server no room",
		asked: []int{len(refusals), len(refusals)}},
	{name: "the same refusal for long", servers: [][]reply{{problem(404, "no-sequencer", "")}, {problem(404, "no-sequencer", "")}}, calls: 10,
		args: patient, want: "Server 404 no-sequencer: no room", asked: []int{10, 10}},
	{name: "different refusals", servers: [][]reply{{problem(401, "unauthorized", "")}, {problem(500, "internal", "")}}, args: patient,
		want: "Unavailable 401 unauthorized: no room 500 internal: no room", asked: []int{1, 1}},
	{name: "a wrong request, and a failure", servers: [][]reply{{problem(503, "draining", "")}, {problem(404, "no-sequencer", "")}},
		want: "Server 404 no-sequencer: no room", asked: []int{1, 1}},
	{name: "a wrong request, and a pause", servers: [][]reply{{problem(503, "busy", "Retry-After: 5")}, {problem(403, "forbidden", "")}},
		want: "Server 403 forbidden: no room", asked: []int{1, 1}},
	{name: "a wrong request of an unknown kind, and a pause", servers: [][]reply{{problem(503, "busy", "Retry-After: 5")}, {problem(409, "frozen", "")}},
		want: "Server 409 frozen: no room", asked: []int{1, 1}},
	{name: "a wrong request, and a refused connection", servers: [][]reply{nil, {problem(400, "bad-parameter", "")}},
		want: "Server 400 bad-parameter: no room", asked: []int{0, 1}},

	{name: "batch-too-large", servers: [][]reply{{atMost(10)}}, command: "take 100", calls: 2, want: "ok",
		counts: []int{100, 50, 25, 12, 6}, most: 6},
	{name: "batch-too-large for one", servers: [][]reply{{atMost(0)}}, want: "Server 400 batch-too-large", counts: []int{3, 1}, asked: []int{2}},

	// Answers and certificates that do not change.
	{name: "an answer of another type", servers: [][]reply{{html, good}, {html, good}}, args: patient,
		want: "Unavailable answer cannot be used", asked: []int{1, 1}},
	{name: "an ID twice", servers: [][]reply{{twice, good}, {twice, good}}, args: patient,
		want: "Unavailable answer cannot be used", asked: []int{1, 1}},
	{name: "an untrusted certificate", servers: [][]reply{{good}, {good}}, scheme: "tls",
		want: "Unavailable certificate", asked: []int{1, 1}},
	{name: "no TLS", servers: [][]reply{{good}, {good}}, scheme: "https", want: "Unavailable http://", asked: []int{1, 1}},

	// The end of the patience.
	{name: "the last failure of each server", servers: [][]reply{nil, {silent}}, args: []string{"--patience", "8"}, want: "Unavailable refused no answer"},
	{name: "a silent server that has failed", servers: [][]reply{{problem(503, "draining", ""), silent}}, args: []string{"--timeout", "60", "--patience", "8"},
		want: "Unavailable 503 draining: no room", asked: []int{2}},

	{name: "white space around a token", servers: [][]reply{{good}}, token: " \tfirn_secret\r\n", want: "ok", asked: []int{1}, bearer: "firn_secret"},
	{name: "a space in a token", servers: [][]reply{{good}}, token: "firn_sec ret", want: "error token", asked: []int{0}},
	{name: "a letter outside ASCII in a token", servers: [][]reply{{good}}, token: "firn_sécret", want: "error token", asked: []int{0}},
	{name: "a token that cannot be read", servers: [][]reply{{good}}, args: []string{"--token-file", "/none"}, want: "error token", asked: []int{0}},

	{name: "a proxy for http", servers: [][]reply{{good}}, proxy: true, want: "error ids.invalid", asked: []int{0}},
	{name: "a proxy for https", servers: [][]reply{{good}}, proxy: true, scheme: "https", want: "error ids.invalid", asked: []int{0}},

	{name: "a timeout below 0", servers: [][]reply{{good}}, args: []string{"--timeout", "-1"}, want: "ends timeout"},
	{name: "a server that is not a URL", servers: [][]reply{{good}}, args: []string{"--servers", "127.0.0.1"}, want: "ends server http://"},
}

var refusals = []reply{
	problem(400, "bad-parameter", ""), problem(401, "unauthorized", ""), problem(403, "forbidden", ""), problem(404, "no-sequencer", ""),
	problem(413, "unexpected-body", ""), problem(500, "internal", ""), problem(501, "", ""), problem(404, "", ""),
}

// An arrival is a request that has reached a server.
type arrival struct {
	server, count int
	at            time.Time
	token         string
}

// All clients follow the same rules: which server they ask how often, after
// which pause, and which error a call returns. Upper limits of time are no part
// of it, because this machine may be slow.
func TestRules(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		if l.name == "asyncio" {
			t.Skip("skipped: its requests are those of python")
		}
		if os.Getenv("FIRN_ALL") == "" && l.name != "go" { // a hundred processes
			t.Skip("skipped: make test-all has it")
		}
		l.command(t)
		for _, r := range rules {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel() // they mostly wait
				r.test(t, l)
			})
		}
	})
}

func (r *rule) test(t *testing.T, l language) {
	var (
		mu       sync.Mutex
		arrivals []arrival
		ids      counter
		fakes    []*fakeServer
		list     []string
	)
	args := slices.Clone(r.args)
	for i, replies := range r.servers {
		if replies == nil {
			list, fakes = append(list, "http://"+nettest.FreeAddress(t)), append(fakes, new(fakeServer))
			continue
		}
		next := 0
		f := startFake(t, r.scheme == "tls", func(request *http.Request, n int) []byte {
			mu.Lock()
			arrivals = append(arrivals, arrival{i, n, time.Now(), request.Header.Get("Authorization")})
			give := replies[min(next, len(replies)-1)]
			next++
			mu.Unlock()
			return give(&ids, request, n)
		})
		if r.scheme == "https" {
			f.url = strings.Replace(f.url, "http:", "https:", 1)
		}
		list, fakes = append(list, f.url), append(fakes, f)
	}
	file := func(option, text string) {
		name := filepath.Join(t.TempDir(), "file")
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		args = append(args, option, name)
	}
	if r.token != "" {
		file("--token-file", r.token)
	}
	if r.scheme == "tls" {
		file("--ca", string(nettest.NewAuthority(t).PEM(t)))
	}
	if r.proxy {
		l = l.withProxy(list[0])
		list[0] = cmp.Or(r.scheme, "http") + "://ids.invalid"
		args = append(args, "--patience", "1")
	}

	seen := func() []arrival {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(arrivals)
	}
	d := l.start(t, list, args...)
	for call := 0; call < max(1, r.calls) || !met(seen(), r.until); call++ {
		got := d.ask("%s", cmp.Or(r.command, "take 3"))
		d.wantAnswer(got, r.want)
		if secret := strings.TrimSpace(r.token); secret != "" && strings.Contains(got, secret) {
			t.Errorf("the answer %q has the token", got)
		}
		if call > 100_000 {
			t.Fatalf("the first server was never asked for %d IDs", r.until)
		}
	}
	all := seen()
	for i, want := range r.asked {
		if got := int(fakes[i].asked.Load()); got != want {
			t.Errorf("server %d got %d requests, want %d: %v", i, got, want, all)
		}
	}
	if r.spared && len(all) >= len(fakes) {
		t.Errorf("%d requests to %d servers: %v", len(all), len(fakes), all)
	}
	for i, a := range all {
		if i < len(r.counts) && a.count != r.counts[i] || i >= len(r.counts) && r.most > 0 && a.count > r.most {
			t.Errorf("request %d is for %d IDs, want %d, and then %d or fewer", i, a.count, r.counts, r.most)
		}
		if want := "Bearer " + r.bearer; r.bearer != "" && a.token != want {
			t.Errorf("the header Authorization is %q, want %q", a.token, want)
		}
	}
	for i, want := range r.gaps { // timers of Node end up to 1 ms early
		if i+1 >= len(all) {
			t.Errorf("no request after %v", all)
		} else if got := all[i+1].at.Sub(all[i].at); got < want*99/100 {
			t.Errorf("request %d followed after %v, want %v or more", i+1, got, want)
		}
	}
}

// withProxy returns the client in an environment that names a proxy.
func (l language) withProxy(proxy string) language {
	host, port, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(proxy, "http://"), "https://"), ":")
	command := l.command
	l.command = func(t *testing.T) []string {
		env := []string{"env"}
		for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
			env = append(env, name+"="+proxy)
		}
		properties := fmt.Sprintf("-Dhttp.proxyHost=%[1]s -Dhttp.proxyPort=%[2]s -Dhttps.proxyHost=%[1]s -Dhttps.proxyPort=%[2]s", host, port)
		return append(append(env, "JAVA_TOOL_OPTIONS="+properties), command(t)...)
	}
	return l
}

// met reports whether the first server was asked for these numbers of IDs, in
// this order.
func met(arrivals []arrival, counts []int) bool {
	for _, a := range arrivals {
		if len(counts) > 0 && a.server == 0 && a.count == counts[0] {
			counts = counts[1:]
		}
	}
	return len(counts) == 0
}

// wantAnswer checks the class and the words of an answer. The classes are
// ServerError in one language and ServerException in another.
func (d *driver) wantAnswer(got, want string) {
	d.t.Helper()
	class, text, _ := strings.Cut(want, " ")
	words := strings.Fields(text)
	has := func() bool {
		if class == "ends" {
			got = d.log.String()
		}
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(strings.ToLower(got), strings.ToLower(w)) })
	}
	ok := false
	switch class {
	case "ok", "error":
		ok = strings.HasPrefix(got, class+" ")
	case "ends":
		ok = strings.HasPrefix(got, "the driver has ended")
		for end := time.Now().Add(must.Patience); ok && !has() && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // the log arrives later
		}
	default:
		ok = strings.HasPrefix(got, "error "+class)
	}
	if !ok || !has() {
		d.t.Fatalf("%s: %s, want %s", d.name, got, want)
	}
}
