package respapi

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/service"
)

// A command is what COMMAND returns about it, the rules that apply to every
// call, and either parse, for a command that takes IDs, or do, which answers
// any other.
type command struct {
	name string
	// arguments, including the name; max 0 means any number
	min, max int
	usage    string // syntax
	// reads a command for IDs, whose first argument is the name of a sequencer
	parse      func(c *conn, args [][]byte) (request, *service.Problem)
	do         func(c *conn, args [][]byte)
	beforeAuth bool // allowed before AUTH
	atOnce     bool // not queued between MULTI and EXEC
}

// commands lists all commands, the most frequent first. Methods of conn use
// Server.commands.
var commands = []command{
	{name: "next", min: 2, max: 5, usage: "NEXT name [count] [FORMAT format]", parse: (*conn).parseNext},
	{name: "nextb", min: 3, max: 3, usage: "NEXTB name count", parse: (*conn).parseNextB},
	{name: "incr", min: 2, max: 2, usage: "INCR name", parse: (*conn).parseIncr},
	{name: "incrby", min: 3, max: 3, usage: "INCRBY name 1", parse: (*conn).parseIncrBy},
	{name: "nextr", min: 3, max: 3, usage: "NEXTR name count", parse: (*conn).parseNextR},
	{name: "multi", min: 1, max: 1, usage: "MULTI", do: (*conn).multi, atOnce: true},
	{name: "exec", min: 1, max: 1, usage: "EXEC", do: (*conn).exec, atOnce: true},
	{name: "discard", min: 1, max: 1, usage: "DISCARD", do: (*conn).discard, atOnce: true},
	{name: "inspect", min: 2, max: 4, usage: "INSPECT id [layout | SEQUENCER name]", do: (*conn).inspect},
	{name: "ping", min: 1, max: 2, usage: "PING [message]", do: (*conn).ping},
	{name: "echo", min: 2, max: 2, usage: "ECHO message", do: (*conn).ping},
	{name: "hello", min: 1, usage: "HELLO [2|3 [AUTH user secret] [SETNAME name]]", do: (*conn).hello, beforeAuth: true},
	{name: "auth", min: 2, max: 3, usage: "AUTH [user] secret", do: (*conn).auth, beforeAuth: true},
	{name: "client", min: 2, do: (*conn).client,
		usage: "CLIENT ID|INFO|GETNAME|SETNAME name|SETINFO attribute value|TRACKING on|off|CACHING yes|no|TRACKINGINFO"},
	{name: "info", min: 1, usage: "INFO [section ...]", do: (*conn).info},
	{name: "role", min: 1, max: 1, usage: "ROLE", do: (*conn).role},
	{name: "command", min: 1, usage: "COMMAND [COUNT|LIST|INFO [name ...]]", do: (*conn).command},
	{name: "select", min: 2, max: 2, usage: "SELECT 0", do: (*conn).selectDB},
	{name: "cluster", min: 1, usage: "CLUSTER", do: (*conn).cluster},
	{name: "quit", min: 1, usage: "QUIT", do: (*conn).quit, beforeAuth: true, atOnce: true},
	{name: "reset", min: 1, max: 1, usage: "RESET", do: (*conn).reset, beforeAuth: true, atOnce: true},
}

// find returns the command with a name, or nil.
func (s *Server) find(name []byte) *command {
	for i := range s.commands {
		if c := &s.commands[i]; isWord(name, c.name) {
			return c
		}
	}
	return nil
}

// isWord reports whether arg is a word, ignoring case; word is in lower case.
func isWord(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

// execute answers a command. raw is the bytes from which it was parsed.
func (c *conn) execute(args [][]byte, raw []byte) {
	began := c.lastEnd // the end of the previous command is the beginning of this one
	if began.IsZero() {
		began = time.Now()
	}
	name, ids, n := "unknown", 0, 1
	c.kind, c.requestID = service.NoProblem, ""
	cmd := c.server.find(args[0])
	c.cmd = cmd
	switch {
	case cmd == nil && isHTTP(args):
		c.refuse(protocolError("this is HTTP, but this listener serves RESP: use a Redis client, or the address that " +
			"serves HTTP"))
		return
	// Commands for IDs check access to the sequencer, which includes this.
	case (cmd == nil || !cmd.beforeAuth) && (c.creds == nil || (cmd == nil || cmd.parse == nil) && !c.isKnown()):
		c.failKind(service.Unauthorized, authRequired)
	case cmd == nil:
		c.fail(unknownCommand(args))
	case len(args) < cmd.min || cmd.max > 0 && len(args) > cmd.max:
		c.fail(fmt.Sprintf("wrong number of arguments for '%s' command: use %s", cmd.name, cmd.usage))
	case c.tx != nil && !cmd.atOnce:
		if c.queue(args, raw) {
			return // it is reported when EXEC has executed it
		}
	case cmd.parse != nil:
		c.accept()
		ids, n = c.next(args, raw)
	default:
		c.accept()
		cmd.do(c, args)
	}
	if cmd == nil && raw[0] != '*' && !c.succeeded {
		// Perhaps it is a line of another protocol, whose next ones may be
		// commands. Clients of Redis that try a command send it as an array.
		c.closing, c.linger = true, true
	}
	// AUTH and RESET are commands of other protocols too.
	c.succeeded = c.succeeded || cmd != nil && !cmd.beforeAuth && c.kind == service.NoProblem
	if c.tx != nil && c.kind != service.NoProblem {
		c.tx.abort()
	}
	if cmd != nil {
		name = cmd.name
	}
	c.count(name, n, ids)
	c.lastEnd = time.Now()
	took := c.lastEnd.Sub(began)
	if c.server.front.Logger.Enabled(c.server.ctx, slog.LevelDebug) {
		c.logRequest(name, n, ids, took)
	}
	c.server.front.Observe(c.kind, took/time.Duration(n), n)
}

// logRequest logs n equal commands that were answered.
func (c *conn) logRequest(name string, n, ids int, took time.Duration) {
	c.server.front.Logger.LogAttrs(c.requestContext(), slog.LevelDebug, "request", slog.String("protocol", "resp"),
		slog.String("command", name),
		slog.Int("commands", n), slog.Int("ids", ids), slog.Bool("failed", c.kind != service.NoProblem),
		slog.Duration("took", took))
}

// ping answers PING and ECHO.
func (c *conn) ping(args [][]byte) {
	if len(args) == 1 {
		c.out = appendSimple(c.out, "PONG")
	} else {
		c.out = appendBulk(c.out, args[1])
	}
}

// role answers ROLE.
func (c *conn) role([][]byte) {
	c.out = appendArray(appendInt(appendBulk(appendArray(c.out, 3), "master"), 0), 0)
}

// selectDB answers SELECT.
func (c *conn) selectDB(args [][]byte) {
	if string(args[1]) != "0" {
		c.fail("DB index is out of range: 0 is the only database")
		return
	}
	c.out = appendSimple(c.out, "OK")
}

// cluster answers CLUSTER with words that clients recognize, and then stop
// asking.
func (c *conn) cluster([][]byte) { c.fail("This instance has cluster support disabled") }

// quit answers QUIT.
func (c *conn) quit([][]byte) {
	c.out = appendSimple(c.out, "OK")
	c.closing = true
	c.linger = c.r < c.w
}

// reset answers RESET.
func (c *conn) reset([][]byte) {
	c.resp3, c.name, c.library, c.tx = false, "", library{}, nil
	c.creds = c.server.initialCreds(c.nc)
	c.out = appendSimple(c.out, "RESET")
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
		if v := string(args[1]); v != "2" && v != "3" {
			c.failAs(service.BadParameter, "NOPROTO", "unsupported protocol version: use 2 or 3")
			return
		}
		resp3 = string(args[1]) == "3"
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
				c.fail(fmt.Sprintf("Syntax error in HELLO option '%.64s': use %s", rest[0], c.cmd.usage))
				return
			}
		}
	}
	if secret != nil && !c.login(secret) {
		return
	}
	if !c.isKnown() {
		c.failKind(service.Unauthorized, "HELLO must be called with the client already authenticated, otherwise the HELLO "+
			"<proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at "+
			"the same time")
		return
	}
	c.resp3, c.name = resp3, name
	proto := int64(2)
	if resp3 {
		proto = 3
	}
	b := appendMap(c.out, resp3, 8)
	// This pair says which commands a client can send, as in INFO. Caches of
	// redis-py and Jedis accept no other name.
	b = appendBulk(appendBulk(b, "server"), "redis")
	b = appendBulk(appendBulk(b, "version"), redisVersion)
	b = appendInt(appendBulk(b, "proto"), proto)
	b = appendInt(appendBulk(b, "id"), c.id)
	b = appendBulk(appendBulk(b, "mode"), "standalone")
	b = appendBulk(appendBulk(b, "role"), "master")
	b = appendArray(appendBulk(b, "modules"), 0)
	// The last pair, because node-redis relies on positions.
	c.out = appendBulk(appendBulk(b, "firn_version"), c.server.config.Version)
}
