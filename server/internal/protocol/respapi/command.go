package respapi

import (
	"fmt"
	"log/slog"
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
	opInspect
	opPing
	opEcho
	opHello
	opAuth
	opClient
	opInfo
	opRole
	opCommand
	opSelect
	opCluster
	opQuit
	opReset
)

// A command describes an op: what COMMAND returns about it, and the rules that
// apply to every call.
type command struct {
	op       op
	name     string
	min, max int      // arguments, including the name; max 0 means any number
	usage    string   // syntax
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
	{op: opNext, name: "next", min: 2, max: 5, usage: "NEXT name [count] [FORMAT format]", flags: flagsNext, key: true},
	{op: opNextB, name: "nextb", min: 3, max: 3, usage: "NEXTB name count", flags: flagsNext, key: true},
	{op: opIncr, name: "incr", min: 2, max: 2, usage: "INCR name", flags: flagsNext, key: true},
	{op: opIncrBy, name: "incrby", min: 3, max: 3, usage: "INCRBY name 1", flags: flagsNext, key: true},
	{op: opNextR, name: "nextr", min: 3, max: 3, usage: "NEXTR name count", flags: flagsNext, key: true},
	{op: opMulti, name: "multi", min: 1, max: 1, usage: "MULTI", flags: flagsTx, in: atOnce},
	{op: opExec, name: "exec", min: 1, max: 1, usage: "EXEC", flags: flagsTx, in: atOnce},
	{op: opDiscard, name: "discard", min: 1, max: 1, usage: "DISCARD", flags: flagsTx, in: atOnce},
	{op: opInspect, name: "inspect", min: 2, max: 4, usage: "INSPECT id [layout | SEQUENCER name]", flags: flagsFast},
	{op: opPing, name: "ping", min: 1, max: 2, usage: "PING [message]", flags: flagsFast},
	{op: opEcho, name: "echo", min: 2, max: 2, usage: "ECHO message", flags: flagsFast},
	{op: opHello, name: "hello", min: 1, usage: "HELLO [2|3 [AUTH user secret] [SETNAME name]]", flags: flagsOpen, open: true, in: refused},
	{op: opAuth, name: "auth", min: 2, max: 3, usage: "AUTH [user] secret", flags: flagsOpen, open: true, in: refused},
	{op: opClient, name: "client", min: 2, usage: "CLIENT ID|INFO|GETNAME|SETNAME name|SETINFO attribute value|NO-EVICT on|off|NO-TOUCH on|off", flags: flagsFast},
	{op: opInfo, name: "info", min: 1, usage: "INFO [section ...]", flags: flagsFast},
	{op: opRole, name: "role", min: 1, max: 1, usage: "ROLE", flags: flagsFast},
	{op: opCommand, name: "command", min: 1, usage: "COMMAND [COUNT|LIST|INFO [name ...]]", flags: flagsFast},
	{op: opSelect, name: "select", min: 2, max: 2, usage: "SELECT 0", flags: flagsFast},
	{op: opCluster, name: "cluster", min: 1, usage: "CLUSTER", flags: flagsFast},
	{op: opQuit, name: "quit", min: 1, usage: "QUIT", flags: flagsOpen, open: true, in: atOnce},
	{op: opReset, name: "reset", min: 1, max: 1, usage: "RESET", flags: flagsOpen, open: true, in: atOnce},
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
	switch {
	case cmd == nil && isHTTP(args):
		c.refuse(protocolError("this is HTTP, but this listener serves RESP: use a Redis client, or the address that serves HTTP"))
		return
	// Commands with a key check access to it, which includes this.
	case (cmd == nil || !cmd.open) && (c.who == nil || (cmd == nil || !cmd.key) && c.may(auth.Anything, "") != nil):
		c.failKind(service.Unauthorized, authRequired)
	case cmd == nil:
		c.fail(unknownCommand(args))
	case len(args) < cmd.min || cmd.max > 0 && len(args) > cmd.max:
		c.fail(fmt.Sprintf("wrong number of arguments for '%s' command: use %s", cmd.name, cmd.usage))
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
	observe(n, c.ended.Sub(began)/time.Duration(n), c.kind)
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
	case opRole:
		c.out = appendArray(appendInt(appendBulk(appendArray(c.out, 3), "master"), 0), 0)
	case opCommand:
		c.answerCommand(args)
	case opSelect:
		if string(args[1]) == "0" {
			c.out = appendSimple(c.out, "OK")
		} else {
			c.fail("DB index is out of range: 0 is the only database")
		}
	case opCluster:
		// Clients recognize these words, and then stop asking.
		c.fail("This instance has cluster support disabled")
	case opQuit:
		c.out = appendSimple(c.out, "OK")
		c.ending = true
		c.linger = c.r < c.w
	case opReset:
		c.resp3, c.name, c.library, c.tx = false, "", library{}, nil
		c.who = c.s.firstWho(c.nc)
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
				c.fail("Protocol version is not an integer or out of range: use 2 or 3")
			} else {
				c.failAs(service.BadParameter, "NOPROTO", "unsupported protocol version: use 2 or 3")
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
				c.fail(fmt.Sprintf("Syntax error in HELLO option '%.64s': use HELLO [2|3 [AUTH user secret] [SETNAME name]]", rest[0]))
				return
			}
		}
	}
	if secret != nil && !c.login(secret) {
		return
	}
	if c.may(auth.Anything, "") != nil {
		c.failKind(service.Unauthorized, "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.resp3, c.name = resp3, name
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
