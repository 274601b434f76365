package respapi

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/servicetest"
	"github.com/firnid/firn/veil"
)

// TestCommands: every command, in both protocol versions. IDs count from 1.
func TestCommands(t *testing.T) {
	const clusterless = "-ERR This instance has cluster support disabled"
	for _, tt := range []struct {
		in   string
		two  string // the answers in RESP2, in lines
		more string // in RESP3, if that differs
	}{
		{"NEXT orders", "1", ""},
		{"next Orders", "1", ""},
		{"NEXT orders 1", "(1)", ""},
		{"NEXT orders 3", "(1 2 3)", ""},
		{"NEXT orders FORMAT hex", "0000000000000001", ""},
		{"NEXT orders 2 format flake62", "(1 2)", ""},
		{"NEXT orders 2 format base62", "(00000000001 00000000002)", ""},
		{"NEXT orders FORMAT raw", "\x00\x00\x00\x00\x00\x00\x00\x01", ""},
		{"NEXTB orders 2", "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02", ""},
		{"NEXTR orders 3", "((0000000000000001 1 :3))", ""},
		{"nextr orders 1", "((0000000000000001 1 :1))", ""},
		{"NEXTR orders", "-ERR wrong number of arguments for 'nextr' command: use NEXTR name count", ""},
		{"NEXTR orders 0", `-ERR bad-parameter: count is "0": it must be a number from 1 to 100000`, ""},
		{"NEXTR a/b 1", `-ERR bad-name: invalid sequencer name "a/b": "/" at offset 1: a name has 1 to 128 characters`, ""},
		{"INCR orders", ":1", ""},
		{"NEXT", "-ERR wrong number of arguments for 'next' command: use NEXT name [count] [FORMAT format]", ""},
		{"NEXT orders 1 FORMAT hex more", "-ERR wrong number of arguments for 'next' command: use NEXT name [count] [FORMAT format]", ""},
		{"NEXT orders 0", `-ERR bad-parameter: count is "0": it must be a number from 1 to 100000`, ""},
		{"NEXT orders 100001", `-ERR batch-too-large: count is "100001": it must be a number from 1 to 100000`, ""},
		{"NEXT orders -1", `-ERR bad-parameter: count is "-1": it must be a number from 1 to 100000`, ""},
		{"NEXT orders 99999999999999999999999", `-ERR batch-too-large: count is "99999999999999999999999": it must be a number from 1 to 100000`, ""},
		{"NEXT orders two", `-ERR bad-parameter: count is "two": it must be a number from 1 to 100000`, ""},
		{"NEXT orders 1 two", `-ERR bad-parameter: syntax error: use NEXT name [count] [FORMAT format]`, ""},
		{"NEXT orders FORMAT", "-ERR bad-parameter: syntax error: use NEXT name [count] [FORMAT format]", ""},
		{"NEXT orders FORMAT hex 3", "-ERR bad-parameter: syntax error: use NEXT name [count] [FORMAT format]", ""},
		{"NEXT orders FORMAT uuid", "-ERR bad-parameter: format uuid", ""},
		{"NEXT orders FORMAT nonsense", "-ERR bad-parameter: parse format", ""},
		{"NEXT a/b", `-ERR bad-name: invalid sequencer name "a/b": "/" at offset 1: a name has 1 to 128 characters`, ""},
		{"NEXT  1", "-ERR bad-name: invalid sequencer name of 0 bytes: a name has 1 to 128 characters", ""},
		{"NEXTB orders", "-ERR wrong number of arguments for 'nextb' command: use NEXTB name count", ""},
		{"NEXTB orders x", `-ERR bad-parameter: count is "x": it must be a number from 1 to 100000`, ""},
		{"INCR a b", "-ERR wrong number of arguments for 'incr' command: use INCR name", ""},
		{"INCRBY orders 1", ":1", ""},
		{"INCRBY orders 3", `-ERR bad-parameter: INCRBY makes one ID, so its amount must be 1: for several IDs use NEXT orders 3`, ""},
		{"INCRBY orders", "-ERR wrong number of arguments for 'incrby' command: use INCRBY name 1", ""},
		{"ROLE", "(master :0 ())", ""},
		{"INSPECT 117411959208411141 default",
			"(layout default time 2026-11-20T23:53:12.484Z time_ms :1795218792484 node :0 seq :5 dec 117411959208411141 hex 01a1218e09000005 from dec score 1 for (", "map(layout default time"},
		{"INSPECT nonsense!", `-ERR bad-id: "nonsense!" `, ""},
		{"INSPECT 5 nonsense", `-ERR bad-parameter: parse layout "nonsense"`, ""},
		{"INSPECT " + strings.Repeat("1", 257), "-ERR bad-id: the ID is too long: the limit is 256 characters", ""},
		{"PING", "+PONG", ""},
		{"PING hello", "hello", ""},
		{"PING a b", "-ERR wrong number of arguments for 'ping' command: use PING [message]", ""},
		{"ECHO hello", "hello", ""},
		{"HELLO 4", "-NOPROTO unsupported protocol version: use 2 or 3", ""},
		{"HELLO 2 NONSENSE", "-ERR Syntax error in HELLO option 'NONSENSE': use HELLO", ""},
		{"HELLO 2 SETNAME a\x01", "-ERR Client names cannot contain spaces, newlines or special characters.", ""},
		{"HELLO", "(server redis version 7.4.0 proto :2 id :1 mode standalone role master modules () firn_version v1)",
			"map(server redis version 7.4.0 proto :3 id :1 mode standalone role master modules () firn_version v1)"},
		{"HELLO 2 AUTH a b", "(server redis", ""},
		{"HELLO 3 AUTH a b SETNAME me", "map(server redis", ""},
		{"HELLO 3 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'", ""},
		{"AUTH secret", "+OK", ""},
		{"AUTH user secret", "+OK", ""},
		{"CLIENT ID", ":1", ""},
		{"CLIENT GETNAME", "nil", ""},
		{"CLIENT SETNAME me", "+OK", ""},
		{"CLIENT SETNAME " + strings.Repeat("x", 257), "-ERR Client names are limited to 256 characters.", ""},
		{"CLIENT SETINFO LIB-NAME redis-py", "+OK", ""},
		{"CLIENT SETINFO lib-ver 5.0", "+OK", ""},
		{"CLIENT SETINFO lib-ver a\x01", "-ERR Values of lib-ver cannot contain spaces", ""},
		{"CLIENT SETINFO other x", "-ERR unknown subcommand or wrong number of arguments for 'SETINFO'", ""},
		{"CLIENT TRACKING ON OPTIN", "+OK", ""},
		{"CLIENT CACHING yes", "+OK", ""},
		{"CLIENT TRACKING off", "+OK", ""},
		{"CLIENT TRACKINGINFO", "(flags (off) redirect :-1 prefixes ())", "map(flags (off) redirect :-1 prefixes ())"},
		{"CLIENT TRACKING maybe", "-ERR unknown subcommand or wrong number of arguments for 'TRACKING'", ""},
		{"CLIENT", "-ERR wrong number of arguments for 'client' command", ""},
		{"INFO nothing", "", "="},
		{"INFO", "# Server\r\nredis_version:7.4.0\r\nfirn_version:v1\r\n", "=txt:# Server\r\n"},
		{"INFO replication Persistence", "# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\n\r\n", "=txt:"},
		{"COMMAND COUNT", fmt.Sprintf(":%d", len(commands)), ""},
		{"COMMAND", "((next :-2 (+write) :1 :1 :1 () () () ()) (nextb :3 ", ""},
		{"COMMAND LIST", "(next nextb incr ", ""},
		{"COMMAND INFO ping none", "((ping :-1 (+fast) :0 :0 :0 () () () ()) nil)", ""},
		{"COMMAND DOCS next", "-ERR unknown subcommand", ""},
		{"COMMAND NONE", "-ERR unknown subcommand or wrong number of arguments for 'NONE'", ""},
		{"SELECT 0", "+OK", ""},
		{"SELECT 1", "-ERR DB index is out of range", ""},
		{"CLUSTER SLOTS", clusterless, ""},
		{"CLUSTER", clusterless, ""},
		{"QUIT", "+OK", ""},
		{"RESET", "+RESET", ""},
		{"GET a b", "-ERR unknown command 'GET', with args beginning with: 'a' 'b' ", ""},
		{"FLUSHALL", "-ERR unknown command 'FLUSHALL', with args beginning with: ", ""},
	} {
		for _, hello := range []string{"HELLO 2", "HELLO 3"} {
			want := tt.two
			if hello == "HELLO 3" && tt.more != "" {
				want = tt.more
			}
			s := NewServer(Config{Front: service.Front{Backend: counting()}, Version: "v1"})
			all := values(t, talk(s, line(hello)+line(tt.in)))
			if len(all) != 2 {
				t.Errorf("%s, %s: %d answers, want 2", hello, tt.in, len(all))
				continue
			}
			if got := all[1].String(); !strings.HasPrefix(got, want) || strings.HasPrefix(want, "+") && got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", hello, tt.in, got, want)
			}
		}
	}
}

// TestTracking: a connection says whether it tracks, which changes nothing
// else.
func TestTracking(t *testing.T) {
	s := NewServer(Config{Front: service.Front{Backend: counting()}, Version: "v1"})
	all := values(t, talk(s, line("CLIENT TRACKING ON OPTIN")+line("CLIENT TRACKINGINFO")+line("NEXT orders")))
	if got := fmt.Sprint(all); got != "[+OK (flags (on) redirect :0 prefixes ()) 1]" {
		t.Errorf("got %s", got)
	}
}

// TestNothingIsReadOnly: COMMAND calls every command that takes IDs a write of
// its first argument, and no command read-only: a cache or a proxy could repeat
// its answer, and a client could send it to a replica.
func TestNothingIsReadOnly(t *testing.T) {
	for _, cmd := range commands {
		info := values(t, string(cmd.appendInfo(nil)))[0].String()
		if strings.Contains(info, "readonly") || strings.Contains(info, "(+write) :1 :1 :1") != (cmd.parse != nil) {
			t.Errorf("COMMAND INFO %s = %s", cmd.name, info)
		}
	}
}

// IDs of 128 bits are text in their own format, and 16 bytes when packed.
func TestWideIDs(t *testing.T) {
	s := NewServer(Config{Front: service.Front{Backend: newStatic(t, "uuidv7")}})
	uuid := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	all := values(t, talk(s, strings.Repeat(line("NEXT u"), 7)+line("NEXT u 2")+line("NEXTB u 3")+line("INCR u")+line("INCR u")+line("NEXT u FORMAT base32")))
	for i := range 7 {
		if !uuid.MatchString(all[i].text) {
			t.Errorf("NEXT = %s, want a UUID", all[i])
		}
	}
	if got := all[7]; len(got.items) != 2 || !uuid.MatchString(got.items[1].text) || got.items[0].text >= got.items[1].text {
		t.Errorf("NEXT u 2 = %s, want two UUIDs", got)
	}
	if got := all[8]; len(got.text) != 48 {
		t.Errorf("NEXTB u 3 has %d bytes, want 48", len(got.text))
	}
	for i := 9; i < 11; i++ {
		if got := all[i].String(); got != "-ERR bad-parameter: INCR returns a 64-bit integer, but IDs of layout uuidv7 have 128 bits: use NEXT u" {
			t.Errorf("INCR u = %s", got)
		}
	}
	if got := all[11].text; len(got) != 26 {
		t.Errorf("NEXT u FORMAT base32 = %s, want 26 digits", got)
	}
}

// TestRuns: the runs of NEXTR hold as many IDs as requested, in order, with as
// many hexadecimal digits as the IDs need; IDs with random bits have no runs.
func TestRuns(t *testing.T) {
	for layout, digits := range map[string]int{"default": 16, "hazelcast": 16, "lable": 16, "boundary": 32} {
		s := NewServer(Config{Front: service.Front{Backend: newStatic(t, layout)}})
		for _, count := range []int{1, 7, 300, 100_000} {
			all := values(t, talk(s, line(fmt.Sprintf("NEXTR u %d", count))+line("PING")))
			total, last := 0, ""
			for _, run := range all[0].items {
				n, err := strconv.Atoi(run.items[2].text)
				first := run.items[0].text
				if err != nil || n < 1 || len(first) != digits || layout != "lable" && first <= last {
					t.Fatalf("%s: NEXTR u %d has the run %s after %q", layout, count, run, last)
				}
				total, last = total+n, first
			}
			if total != count || len(all) != 2 {
				t.Errorf("%s: NEXTR u %d has %d IDs", layout, count, total)
			}
		}
	}
	s := NewServer(Config{Front: service.Front{Backend: newStatic(t, "uuidv7")}})
	if got := talk(s, line("NEXTR u 2")); got != "-ERR no-runs: layout uuidv7 has random bits or a step of 2^64 or more, so its IDs do not form runs: request the IDs themselves\r\n" {
		t.Errorf("uuidv7: %q", got)
	}
}

// TestIncrPipelined: pipelined INCRs are answered in order, each with its own
// ID, or with an error if that is too large.
func TestIncrPipelined(t *testing.T) {
	next := uint64(1<<63 - 600)
	source := servicetest.Open(func(_ context.Context, n int) (firn.Batch, error) {
		first := next
		next += uint64(n)
		return firn.BatchFromRuns(firn.Run{First: firn.ID(first), Step: 1, Count: n})
	})
	all := values(t, talk(NewServer(Config{Front: service.Front{Backend: source}}), strings.Repeat(line("INCR a"), 1000)+line("PING")))
	if len(all) != 1001 || all[1000].text != "PONG" {
		t.Fatalf("%d answers", len(all))
	}
	for i, got := range all[:1000] {
		id := uint64(1<<63-600) + uint64(i)
		want := fmt.Sprintf(":%d", id)
		if id > math.MaxInt64 {
			want = fmt.Sprintf("-ERR bad-parameter: the ID %d does not fit the signed integers of RESP: use NEXT a", id)
		}
		if got.String() != want {
			t.Fatalf("answer %d is %s, want %s", i, got, want)
		}
	}
}

// INSPECT has the fields that HTTP has.
func TestInspect(t *testing.T) {
	s := NewServer(Config{Front: service.Front{Backend: counting()}})
	for _, tt := range []struct{ in, want string }{
		{"INSPECT 117411959208411141 default", "map(layout default time 2026-11-20T23:53:12.484Z time_ms :1795218792484 node :0 seq :5 "},
		{"INSPECT 175928847299117063 twitter", "node_parts map("},
		{"INSPECT 919108f7-52d1-4320-9bac-f847db4148a8", "map(layout uuidv4 time nil time_ms nil node nil seq nil dec "},
		{"INSPECT 18446744073709551615 flake-idgen", "dec 18446744073709551615 hex ffffffffffffffff from dec score ,1 for ("},
	} {
		all := values(t, talk(s, line("HELLO 3")+line(tt.in)))
		if got := all[1].String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

// TestObserve: Observe gets every command, and whether it failed.
func TestObserve(t *testing.T) {
	var got strings.Builder
	s := NewServer(Config{Front: service.Front{Backend: counting(), Observe: func(k service.Kind, d time.Duration, n int) {
		if d < 0 {
			t.Errorf("a command took %v", d)
		}
		fmt.Fprintf(&got, "%d %t, ", n, k != service.NoProblem)
	}}})
	talk(s, line("NEXT a")+strings.Repeat(line("NEXT a"), 6)+line("NEXTB a 9")+line("NEXT a/b")+line("GET a")+line("PING")+line("NEXT a 100000")+"*x\r\n")
	if want := "7 false, 1 false, 1 true, 1 true, 1 false, 1 false, 1 true, "; got.String() != want {
		t.Errorf("observed %s\nwant %s", &got, want)
	}
}

// A guard knows one token, and a client with a certificate if cert is set.
// allows says what they may do; nil means everything.
type guard struct {
	certificates bool
	allows       func(do auth.Action, name string) error
}

func (g guard) Allow(c *auth.Credentials, do auth.Action, name string) error {
	known := c.Token == "right"
	if !c.Given {
		known = g.certificates && c.TLS != nil && len(c.TLS.PeerCertificates) > 0
	}
	switch {
	case !known:
		return auth.ErrUnauthorized
	case g.allows == nil:
		return nil
	}
	return g.allows(do, name)
}

// onlyOrders lets clients make IDs of orders.
func onlyOrders(do auth.Action, name string) error {
	if do == auth.Connect || do == auth.Take && name == "orders" {
		return nil
	}
	return auth.ErrForbidden
}

// ending allows what onlyOrders allows for the given number of checks, and then
// knows no client.
func ending(left int) func(auth.Action, string) error {
	return func(do auth.Action, name string) error {
		if left--; left < 0 {
			return auth.ErrUnauthorized
		}
		return onlyOrders(do, name)
	}
}

// TestAuthEnds: a client that is no longer known has to authenticate again,
// whatever the command.
func TestAuthEnds(t *testing.T) {
	const noAuth = "-NOAUTH Authentication required."
	script(t, NewServer(Config{Front: service.Front{Backend: counting(), Auth: guard{allows: ending(4)}}}), [][2]string{
		{"AUTH right", "+OK"},
		{"NEXT orders", "1"},
		{"PING", "+PONG"},
		{"ECHO a", "a"},
		{"NEXT orders", noAuth},
		{"NEXT users", noAuth},
		{"NEXTB orders 2", noAuth},
		{"INCR orders", noAuth},
		{"INSPECT 1", noAuth},
		{"INFO", noAuth},
		{"PING", noAuth},
		{"HELLO 3", "-NOAUTH HELLO must be called"},
		{"NONE", noAuth},
		{"RESET", "+RESET"},
	})
}

func TestAuth(t *testing.T) {
	const noAuth, wrong = "-NOAUTH Authentication required.", "-WRONGPASS invalid username-password pair or user is disabled"
	script(t, NewServer(Config{Front: service.Front{Backend: counting(), Auth: guard{allows: onlyOrders}}}), [][2]string{
		{"NEXT orders", noAuth},
		{"PING", noAuth},
		{"NONE", noAuth},
		{"CLIENT ID", noAuth},
		{"INFO", noAuth},
		{"COMMAND", noAuth},
		{"HELLO", "-NOAUTH HELLO must be called with the client already authenticated"},
		{"HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated"},
		{"AUTH", "-ERR wrong number of arguments for 'auth' command"},
		{"AUTH wrong", wrong},
		{"AUTH other wrong", wrong},
		{"HELLO 3 AUTH default wrong", wrong},
		{"NEXT orders", noAuth},
		{"RESET", "+RESET"},
		{"AUTH right", "+OK"},
		{"NEXT orders", "1"},
		{"NEXT users", "-NOPERM forbidden: permission denied: this token does not allow it"},
		{"NEXT users", "-NOPERM forbidden: permission denied: this token does not allow it"},
		{"INCR users", "-NOPERM "},
		{"NEXTB users 2", "-NOPERM "},
		{"INSPECT 1", "-NOPERM forbidden: permission denied: this token does not allow it"},
		{"AUTH wrong", wrong},
		{"NEXT orders", "2"}, // as in Redis, the client stays authenticated
		{"RESET", "+RESET"},
		{"NEXT orders", noAuth},
		{"AUTH default right", "+OK"},
		{"RESET", "+RESET"},
		{"HELLO 3 AUTH default right SETNAME me", "map(server redis"},
		{"CLIENT GETNAME", "me"},
		{"QUIT", "+OK"},
	})
}

// TestClientInfo: CLIENT INFO has what the connection reported about itself.
func TestClientInfo(t *testing.T) {
	c := dialTCP(t, serveTCP(t, NewServer(Config{Front: service.Front{Backend: counting()}})))
	for _, text := range []string{"HELLO 3 SETNAME me", "CLIENT SETINFO LIB-NAME some-lib", "CLIENT SETINFO LIB-VER 1.2"} {
		if got := c.do(text); strings.HasPrefix(got, "-") {
			t.Fatalf("%s = %s", text, got)
		}
	}
	want := fmt.Sprintf("id=1 addr=%s laddr=%s name=me age=0 db=0 user=default resp=3 lib-name=some-lib lib-ver=1.2\n", c.LocalAddr(), c.RemoteAddr())
	if got := regexp.MustCompile(`age=\d+`).ReplaceAllString(c.do("CLIENT INFO"), "age=0"); !strings.HasSuffix(got, want) {
		t.Errorf("CLIENT INFO = %q, want %q", got, want)
	}
}

// TestIntegers: INCR above 2^53 is logged once. If the server is configured to
// refuse, it is refused by the layout, before an ID is taken.
func TestIntegers(t *testing.T) {
	const warning = "INCR returned an integer above 2^53"
	for _, tt := range []struct {
		layout string
		refuse bool
		want   string
		warns  int
	}{
		{"default", false, ":", 1},
		{"default", true, "-ERR bad-parameter: IDs of layout default exceed 2^53, where JavaScript rounds integers, and this server does not return them as integers: use NEXT ", 0},
		{"js53", false, ":", 0},
		{"js53", true, ":", 0},
		{"uuidv7", true, "-ERR bad-parameter: INCR returns a 64-bit integer", 0},
	} {
		var log strings.Builder
		s := NewServer(Config{Front: service.Front{Backend: newStatic(t, tt.layout), Logger: slog.New(slog.NewTextHandler(&log, nil))}, RefuseUnsafe: tt.refuse})
		all := values(t, talk(s, line("CLIENT SETINFO lib-name ioredis")+strings.Repeat(line("INCR a"), 9)+line("INCRBY a 1")+line("INCR b")+line("NEXT a")))
		for i, v := range all[1 : len(all)-1] {
			if !strings.HasPrefix(v.String(), tt.want) {
				t.Errorf("%s: answer %d = %s, want %s", tt.layout, i, v, tt.want)
			}
		}
		if last := all[len(all)-1]; last.kind != '$' {
			t.Errorf("%s: NEXT = %s", tt.layout, last)
		}
		if n := strings.Count(log.String(), warning); n != tt.warns {
			t.Errorf("%s: %d warnings, want %d:\n%s", tt.layout, n, tt.warns, &log)
		}
		if tt.warns > 0 && (!strings.Contains(log.String(), "sequencer=a client=ioredis") || !strings.Contains(log.String(), "use NEXT")) {
			t.Errorf("the warning is %s", &log)
		}
	}
}

// INSPECT reads veiled IDs with the server's key if it knows the sequencer.
func TestVeiled(t *testing.T) {
	b := counting()
	keys := must.Get(veil.ParseKeys("7:" + strings.Repeat("00", 32)))(t)
	b.Opened("orders").Veil = func() (form.Veil, error) { return form.NewVeil(keys, "orders", b.Opened("orders").Layout) }
	s := NewServer(Config{Front: service.Front{Backend: b, VeilKeys: keys}})
	id := values(t, talk(s, line("NEXT orders FORMAT veiled")))[0].String()
	if !strings.HasPrefix(id, "v7_") {
		t.Fatalf("NEXT orders FORMAT veiled = %s", id)
	}
	for _, row := range []struct{ in, want string }{
		{"INSPECT " + id + " SEQUENCER orders", " dec 1 hex 0000000000000001 from veiled "},
		{"INSPECT 1 SEQUENCER orders", " dec 1 hex 0000000000000001 from dec "},
		{"INSPECT " + id, "-ERR bad-parameter: \"" + id + "\" is a veiled ID: name its sequencer"},
		{"INSPECT " + id + " default", "-ERR bad-parameter: \"" + id + "\" is a veiled ID: name its sequencer"},
		{"INSPECT " + strings.Replace(id, "v7", "v8", 1) + " SEQUENCER orders", "it was veiled with key 8, and this key is not known"},
		{"INSPECT " + id + ` SEQUENCER ""`, "-ERR bad-name: "},
		{"INSPECT " + id + " SEQUENCER a/b", "-ERR bad-name: invalid sequencer name"},
		{"INSPECT " + id + " default orders", "-ERR syntax error: use INSPECT id [layout | SEQUENCER name]"},
	} {
		if got := values(t, talk(s, line(row.in)))[0].String(); !strings.Contains(got, row.want) {
			t.Errorf("%s = %s, want %s", row.in, got, row.want)
		}
	}
}
