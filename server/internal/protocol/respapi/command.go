package respapi

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// An op is a command that exists.
type op uint8

const (
	opUnknown op = iota
	opNext
	opNextB
	opNextR
	opIncr
	opIncrBy
	opMulti
	opExec
	opDiscard
	opWatch
	opUnwatch
	opInspect
	opPing
	opEcho
	opHello
	opAuth
	opClient
	opInfo
	opConfig
	opTime
	opDBSize
	opRole
	opCommand
	opSelect
	opCluster
	opReadOnly
	opReadWrite
	opAsking
	opQuit
	opReset
)

// A command describes an op: what COMMAND returns about it, and the rules that
// apply to every call.
type command struct {
	op       op
	name     string
	group    string // in Redis's documentation
	min, max int    // arguments, including the name; max 0 means any number
	usage    string // syntax
	about    string
	flags    []string // as Redis names them
	key      bool     // the first argument is the name of a sequencer
	open     bool     // allowed before AUTH
	in       inMulti  // what happens to it between MULTI and EXEC
}

var (
	flagsNext = []string{"write", "denyoom", "fast"}
	flagsFast = []string{"loading", "stale", "fast"}
	flagsOpen = []string{"noscript", "loading", "stale", "fast", "no_auth"}
	flagsTx   = []string{"noscript", "loading", "stale", "fast"}
)

// commands lists all commands, the most frequent first.
var commands = [...]command{
	{op: opNext, name: "next", group: "generic", min: 2, max: 5, usage: "NEXT name [count] [FORMAT format]", about: "Makes new IDs of a sequencer: one as a string, or count of them as an array", flags: flagsNext, key: true},
	{op: opNextB, name: "nextb", group: "generic", min: 3, max: 3, usage: "NEXTB name count", about: "Makes count new IDs and returns them in one string, 8 or 16 bytes each, big-endian", flags: flagsNext, key: true},
	{op: opIncr, name: "incr", group: "generic", min: 2, max: 2, usage: "INCR name", about: "Makes a new 64-bit ID and returns it as an integer, which some clients round", flags: flagsNext, key: true},
	{op: opIncrBy, name: "incrby", group: "generic", min: 3, max: 3, usage: "INCRBY name 1", about: "Same as INCR, for clients that send it; the amount must be 1", flags: flagsNext, key: true},
	{op: opNextR, name: "nextr", group: "generic", min: 3, max: 3, usage: "NEXTR name count", about: "Makes count new IDs and returns them as runs: first ID in hexadecimal, step and count", flags: flagsNext, key: true},
	{op: opMulti, name: "multi", group: "transactions", min: 1, max: 1, usage: "MULTI", about: "Queues the commands that follow", flags: flagsTx, in: atOnce},
	{op: opExec, name: "exec", group: "transactions", min: 1, max: 1, usage: "EXEC", about: "Executes the queued commands", flags: flagsTx, in: atOnce},
	{op: opDiscard, name: "discard", group: "transactions", min: 1, max: 1, usage: "DISCARD", about: "Discards the queued commands", flags: flagsTx, in: atOnce},
	{op: opWatch, name: "watch", group: "transactions", min: 2, usage: "WATCH name [name ...]", about: "Not supported: no ID is given twice, so there is nothing to watch", flags: flagsTx, in: refused},
	{op: opUnwatch, name: "unwatch", group: "transactions", min: 1, max: 1, usage: "UNWATCH", about: "Does nothing, as WATCH is not supported", flags: flagsFast},
	{op: opInspect, name: "inspect", group: "generic", min: 2, max: 4, usage: "INSPECT id [layout | SEQUENCER name]", about: "Returns the layout, time, node and sequence of an ID", flags: flagsFast},
	{op: opPing, name: "ping", group: "connection", min: 1, max: 2, usage: "PING [message]", about: "Returns PONG, or the message", flags: flagsFast},
	{op: opEcho, name: "echo", group: "connection", min: 2, max: 2, usage: "ECHO message", about: "Returns the message", flags: flagsFast},
	{op: opHello, name: "hello", group: "connection", min: 1, usage: "HELLO [2|3 [AUTH user secret] [SETNAME name]]", about: "Selects the protocol version and returns facts about the server", flags: flagsOpen, open: true, in: refused},
	{op: opAuth, name: "auth", group: "connection", min: 2, max: 3, usage: "AUTH [user] secret", about: "Authenticates the client with a token", flags: flagsOpen, open: true, in: refused},
	{op: opClient, name: "client", group: "connection", min: 2, usage: "CLIENT ID|INFO|LIST|GETNAME|SETNAME name|SETINFO attribute value|NO-EVICT on|off|NO-TOUCH on|off", about: "Names the connection and lists connections", flags: flagsFast},
	{op: opInfo, name: "info", group: "server", min: 1, usage: "INFO [section ...]", about: "Returns facts about the server", flags: flagsFast},
	{op: opConfig, name: "config", group: "server", min: 2, usage: "CONFIG GET pattern [pattern ...]", about: "Returns the settings that Redis clients ask for", flags: flagsFast},
	{op: opTime, name: "time", group: "server", min: 1, max: 1, usage: "TIME", about: "Returns the time of the server's clock: seconds since 1970, and microseconds", flags: flagsFast},
	{op: opDBSize, name: "dbsize", group: "server", min: 1, max: 1, usage: "DBSIZE", about: "Returns 0: there are no keys", flags: flagsFast},
	{op: opRole, name: "role", group: "server", min: 1, max: 1, usage: "ROLE", about: "Returns master: every server serves every sequencer", flags: flagsFast},
	{op: opCommand, name: "command", group: "server", min: 1, usage: "COMMAND [COUNT|LIST|INFO [name ...]|DOCS [name ...]]", about: "Lists and describes the commands", flags: flagsFast},
	{op: opSelect, name: "select", group: "connection", min: 2, max: 2, usage: "SELECT 0", about: "Does nothing: database 0 is the only one", flags: flagsFast},
	{op: opCluster, name: "cluster", group: "cluster", min: 1, usage: "CLUSTER", about: "Not supported: every server serves every sequencer", flags: flagsFast},
	{op: opReadOnly, name: "readonly", group: "cluster", min: 1, max: 1, usage: "READONLY", about: "Not supported, like CLUSTER", flags: flagsFast},
	{op: opReadWrite, name: "readwrite", group: "cluster", min: 1, max: 1, usage: "READWRITE", about: "Not supported, like CLUSTER", flags: flagsFast},
	{op: opAsking, name: "asking", group: "cluster", min: 1, max: 1, usage: "ASKING", about: "Not supported, like CLUSTER", flags: flagsFast},
	{op: opQuit, name: "quit", group: "connection", min: 1, usage: "QUIT", about: "Closes the connection", flags: flagsOpen, open: true, in: atOnce},
	{op: opReset, name: "reset", group: "connection", min: 1, max: 1, usage: "RESET", about: "Resets the connection to its initial state", flags: flagsOpen, open: true, in: atOnce},
}

// arity returns Redis's argument count: negative means at least that many.
func (c *command) arity() int64 {
	if c.min == c.max {
		return int64(c.min)
	}
	return -int64(c.min)
}

// find returns the command with a name, or nil.
func find(name []byte) *command {
	for i := range commands {
		if c := &commands[i]; isWord(name, c.name) {
			return c
		}
	}
	return nil
}

// isWord reports whether arg is a word, ignoring case; word is in lower case.
func isWord(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i := range len(word) {
		c := arg[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// execute answers a command. raw is the bytes from which it was parsed.
func (c *conn) execute(args [][]byte, raw []byte) {
	var began time.Time
	observe, debug := c.s.c.Observe, c.s.c.Log.Enabled(c.s.ctx, slog.LevelDebug)
	if observe != nil || debug {
		// The end of the previous command is the beginning of this one.
		if began = c.ended; began.IsZero() {
			began = time.Now()
		}
	}
	name, ids, n := "unknown", 0, 1
	c.kind, c.request = service.NoProblem, ""
	cmd := find(args[0])
	c.last = cmd
	switch {
	case cmd == nil && isHTTP(args):
		c.refuse(protocolError("this is HTTP, but this listener serves RESP: use a Redis client, or the address that serves HTTP"))
		return
	// Commands with a key check access to it, which includes this.
	case (cmd == nil || !cmd.open) && (c.who == nil || (cmd == nil || !cmd.key) && c.may(auth.Anything, "") != nil):
		c.failAs(service.Unauthorized, service.Unauthorized.RESP(), authRequired)
	case cmd == nil:
		c.fail(codeErr, unknownCommand(args))
	case len(args) < cmd.min || cmd.max > 0 && len(args) > cmd.max:
		c.fail(codeErr, fmt.Sprintf("wrong number of arguments for '%s' command: use %s", cmd.name, cmd.usage))
	case c.tx != nil && cmd.in != atOnce:
		if c.queue(cmd, args, raw) {
			return // it is reported when EXEC has executed it
		}
	default:
		ids, n = c.do(cmd.op, args, raw)
	}
	if c.tx != nil && c.kind != service.NoProblem {
		c.tx.abort()
	}
	c.counted.commands += uint64(n)
	c.counted.ids += uint64(ids)
	if cmd != nil {
		name = cmd.name
	}
	if c.s.c.Trace != nil {
		c.note(name, ids, n)
	}
	if debug {
		c.s.c.Log.LogAttrs(c.requestContext(), slog.LevelDebug, "request", slog.String("protocol", "resp"), slog.String("command", name),
			slog.Int("commands", n), slog.Int("ids", ids), slog.Bool("failed", c.kind != service.NoProblem), slog.Duration("took", time.Since(began)))
	}
	if observe == nil {
		return
	}
	c.ended = time.Now()
	observe(name, n, ids/n, c.ended.Sub(began)/time.Duration(n), c.kind)
}

// do answers an allowed command. It returns how many IDs it gave and how many
// commands it answered, which is more than one if the same command was
// repeated.
func (c *conn) do(o op, args [][]byte, raw []byte) (ids, n int) {
	switch o {
	case opNext, opNextB, opNextR, opIncr, opIncrBy:
		return c.take(o, args, raw)
	case opMulti:
		c.multi()
	case opExec:
		c.exec()
	case opDiscard:
		c.discardQueue()
	case opWatch:
		c.fail(codeErr, "WATCH is not supported: a sequencer never gives an ID twice, so there is nothing to watch; leave it out")
	case opUnwatch:
		c.out = appendSimple(c.out, "OK")
	case opInspect:
		c.inspect(args)
	case opPing:
		if len(args) == 1 {
			c.out = appendSimple(c.out, "PONG")
		} else {
			c.out = appendBulk(c.out, args[1])
		}
	case opEcho:
		c.out = appendBulk(c.out, args[1])
	case opHello:
		c.hello(args)
	case opAuth:
		if c.login(args[len(args)-1]) {
			c.out = appendSimple(c.out, "OK")
		}
	case opClient:
		c.client(args)
	case opInfo:
		c.info(args)
	case opConfig:
		c.config(args)
	case opTime:
		now := time.Now()
		c.out = appendArray(c.out, 2)
		c.out = appendBulk(c.out, strconv.FormatInt(now.Unix(), 10))
		c.out = appendBulk(c.out, strconv.Itoa(now.Nanosecond()/1000))
	case opDBSize:
		c.out = appendInt(c.out, 0)
	case opRole:
		c.out = appendArray(appendInt(appendBulk(appendArray(c.out, 3), "master"), 0), 0)
	case opCommand:
		c.command(args)
	case opSelect:
		if string(args[1]) == "0" {
			c.out = appendSimple(c.out, "OK")
		} else {
			c.fail(codeErr, "DB index is out of range: 0 is the only database")
		}
	case opCluster, opReadOnly, opReadWrite, opAsking:
		// Clients recognize these words, and then stop asking.
		c.fail(codeErr, "This instance has cluster support disabled")
	case opQuit:
		c.out = appendSimple(c.out, "OK")
		c.ending = true
		c.linger = c.r < c.w
	case opReset:
		c.resp3, c.name, c.library, c.tx = false, "", library{}, nil
		c.who = c.s.firstWho(c.nc)
		c.publish()
		c.out = appendSimple(c.out, "RESET")
	}
	return 0, 1
}

// isHTTP reports whether a command is the beginning of an HTTP request, from a
// browser or a client that mistakes this port for one of HTTP. Like Redis, the
// server then closes the connection: the body of a POST could contain commands.
func isHTTP(args [][]byte) bool {
	return isWord(args[0], "post") || isWord(args[0], "host:") ||
		len(args) == 3 && strings.HasPrefix(string(args[2]), "HTTP/")
}

// unknownCommand returns Redis's error text, which clients recognize.
func unknownCommand(args [][]byte) string {
	const most = 128
	var b strings.Builder
	fmt.Fprintf(&b, "unknown command '%.*s', with args beginning with: ", most, args[0])
	for left := most; len(args) > 1 && left > 0; args = args[1:] {
		a := args[1][:min(len(args[1]), left)]
		fmt.Fprintf(&b, "'%s' ", a)
		left -= len(a) + len("'' ")
	}
	b.WriteString("(Firn makes IDs and stores no keys: COMMAND LIST returns its commands)")
	return b.String()
}

// hello answers HELLO.
func (c *conn) hello(args [][]byte) {
	resp3, name := c.resp3, c.name
	var secret []byte
	if len(args) > 1 {
		switch v := string(args[1]); v {
		case "2", "3":
			resp3 = v == "3"
		default:
			if !isNumber(args[1]) {
				c.fail(codeErr, "Protocol version is not an integer or out of range: use 2 or 3")
			} else {
				c.fail("NOPROTO", "unsupported protocol version: use 2 or 3")
			}
			return
		}
		for rest := args[2:]; len(rest) > 0; {
			switch {
			case isWord(rest[0], "auth") && len(rest) >= 3:
				secret, rest = rest[2], rest[3:]
			case isWord(rest[0], "setname") && len(rest) >= 2:
				if !c.checkName("Client names", rest[1]) {
					return
				}
				name, rest = string(rest[1]), rest[2:]
			default:
				c.fail(codeErr, fmt.Sprintf("Syntax error in HELLO option '%.64s': use HELLO [2|3 [AUTH user secret] [SETNAME name]]", rest[0]))
				return
			}
		}
	}
	if secret != nil && !c.login(secret) {
		return
	}
	if c.may(auth.Anything, "") != nil {
		c.failAs(service.Unauthorized, service.Unauthorized.RESP(), "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.resp3, c.name = resp3, name
	c.publish()
	proto := int64(2)
	if resp3 {
		proto = 3
	}
	b := appendMap(c.out, resp3, 8)
	b = appendBulk(appendBulk(b, "server"), "firn")
	b = appendBulk(appendBulk(b, "version"), redisVersion)
	b = appendInt(appendBulk(b, "proto"), proto)
	b = appendInt(appendBulk(b, "id"), c.id)
	b = appendBulk(appendBulk(b, "mode"), "standalone")
	b = appendBulk(appendBulk(b, "role"), "master")
	b = appendArray(appendBulk(b, "modules"), 0)
	c.out = appendBulk(appendBulk(b, "firn_version"), c.s.c.Version) // last: node-redis relies on positions
}

// isNumber reports whether b is a decimal number.
func isNumber(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
