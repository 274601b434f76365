package respapi

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/service"
)

// An op is a command that there is.
type op uint8

const (
	opUnknown op = iota
	opNext
	opNextB
	opIncr
	opInspect
	opPing
	opEcho
	opHello
	opAuth
	opClient
	opInfo
	opCommand
	opSelect
	opCluster
	opReadOnly
	opReadWrite
	opAsking
	opQuit
	opReset
)

// A command is what is known of an op: what COMMAND answers, and what holds for
// all.
type command struct {
	op       op
	name     string
	min, max int    // arguments, the name included; max 0 means any number
	usage    string // how it is written
	about    string
	flags    []string // as Redis names them
	key      bool     // the first argument is the name of a sequencer
	open     bool     // it is answered before AUTH
}

var (
	flagsNext = []string{"write", "denyoom", "fast"}
	flagsFast = []string{"loading", "stale", "fast"}
	flagsOpen = []string{"noscript", "loading", "stale", "fast", "no_auth"}
)

// commands are all that there are, the most frequent first.
var commands = [...]command{
	{op: opNext, name: "next", min: 2, max: 5, usage: "NEXT name [count] [FORMAT format]", about: "Makes new IDs of a sequencer: one as a string, or count of them as an array", flags: flagsNext, key: true},
	{op: opNextB, name: "nextb", min: 3, max: 3, usage: "NEXTB name count", about: "Makes count new IDs and returns them in one string, 8 or 16 bytes each, big-endian", flags: flagsNext, key: true},
	{op: opIncr, name: "incr", min: 2, max: 2, usage: "INCR name", about: "Makes a new ID of 64 bits and returns it as an integer; some clients round it", flags: flagsNext, key: true},
	{op: opInspect, name: "inspect", min: 2, max: 3, usage: "INSPECT id [layout]", about: "Returns what an ID says: its layout, time, node and sequence", flags: flagsFast},
	{op: opPing, name: "ping", min: 1, max: 2, usage: "PING [message]", about: "Returns PONG, or the message", flags: flagsFast},
	{op: opEcho, name: "echo", min: 2, max: 2, usage: "ECHO message", about: "Returns the message", flags: flagsFast},
	{op: opHello, name: "hello", min: 1, usage: "HELLO [2|3 [AUTH user secret] [SETNAME name]]", about: "Chooses the version of the protocol, and says what this server is", flags: flagsOpen, open: true},
	{op: opAuth, name: "auth", min: 2, max: 3, usage: "AUTH [user] secret", about: "Says who the client is", flags: flagsOpen, open: true},
	{op: opClient, name: "client", min: 2, usage: "CLIENT ID|GETNAME|SETNAME name|SETINFO attribute value|NO-EVICT on|off|NO-TOUCH on|off", about: "Names the connection", flags: flagsFast},
	{op: opInfo, name: "info", min: 1, usage: "INFO [section ...]", about: "Returns facts about the server", flags: flagsFast},
	{op: opCommand, name: "command", min: 1, usage: "COMMAND [COUNT|LIST|INFO [name ...]|DOCS [name ...]]", about: "Returns which commands there are", flags: flagsFast},
	{op: opSelect, name: "select", min: 2, max: 2, usage: "SELECT 0", about: "Does nothing: there is one database, 0", flags: flagsFast},
	{op: opCluster, name: "cluster", min: 1, usage: "CLUSTER", about: "Is an error: any server can be asked for any sequencer", flags: flagsFast},
	{op: opReadOnly, name: "readonly", min: 1, max: 1, usage: "READONLY", about: "Is an error, as CLUSTER is", flags: flagsFast},
	{op: opReadWrite, name: "readwrite", min: 1, max: 1, usage: "READWRITE", about: "Is an error, as CLUSTER is", flags: flagsFast},
	{op: opAsking, name: "asking", min: 1, max: 1, usage: "ASKING", about: "Is an error, as CLUSTER is", flags: flagsFast},
	{op: opQuit, name: "quit", min: 1, usage: "QUIT", about: "Closes the connection", flags: flagsOpen, open: true},
	{op: opReset, name: "reset", min: 1, max: 1, usage: "RESET", about: "Makes the connection as it was when it began", flags: flagsOpen, open: true},
}

// group is how Redis' documentation would sort a command.
func (c *command) group() string {
	switch c.op {
	case opNext, opNextB, opIncr, opInspect:
		return "generic"
	case opInfo, opCommand:
		return "server"
	case opCluster, opReadOnly, opReadWrite, opAsking:
		return "cluster"
	}
	return "connection"
}

// arity is how Redis counts arguments: negative for at least so many.
func (c *command) arity() int64 {
	if c.min == c.max {
		return int64(c.min)
	}
	return -int64(c.min)
}

// find finds the command of a name, or nil.
func find(name []byte) *command {
	for i := range commands {
		if c := &commands[i]; isWord(name, c.name) {
			return c
		}
	}
	return nil
}

// isWord reports whether arg is a word, which is given in lower case.
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

// execute answers a command. Raw are the bytes it was read from.
func (c *conn) execute(args [][]byte, raw []byte) {
	var began time.Time
	observe, debug := c.s.c.Observe, c.s.c.Log.Enabled(c.s.ctx, slog.LevelDebug)
	if observe != nil || debug {
		// The end of the command before is the beginning of this one.
		if began = c.ended; began.IsZero() {
			began = time.Now()
		}
	}
	name, ids, n := "unknown", 0, 1
	c.failed, c.request = false, ""
	cmd := find(args[0])
	switch {
	case cmd == nil && isHTTP(args):
		c.refuse(protocolError("this is HTTP, and the server speaks RESP here: use a Redis client, or ask the port that serves HTTP"))
		return
	// Those with a key ask whether the client may have it, and find out so.
	case (cmd == nil || !cmd.open) && (c.who == nil || (cmd == nil || !cmd.key) && c.may(auth.Anything, "") != nil):
		c.fail(service.Unauthorized.RESP(), authRequired)
	case cmd == nil:
		c.fail(codeErr, unknownCommand(args))
	case len(args) < cmd.min || cmd.max > 0 && len(args) > cmd.max:
		c.fail(codeErr, fmt.Sprintf("wrong number of arguments for '%s' command: it is %s", cmd.name, cmd.usage))
	default:
		ids, n = c.do(cmd.op, args, raw)
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
			slog.Int("commands", n), slog.Int("ids", ids), slog.Bool("failed", c.failed), slog.Duration("took", time.Since(began)))
	}
	if observe == nil {
		return
	}
	c.ended = time.Now()
	observe(name, n, ids/n, c.ended.Sub(began)/time.Duration(n), c.failed)
}

// do answers a command that may be answered. It returns how many IDs it gave, and
// how many commands it answered: more than one where the same comes again.
func (c *conn) do(o op, args [][]byte, raw []byte) (ids, n int) {
	switch o {
	case opNext:
		return c.next(args, raw)
	case opNextB:
		return c.nextB(args), 1
	case opIncr:
		return c.incr(args, raw)
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
	case opCommand:
		c.command(args)
	case opSelect:
		if string(args[1]) == "0" {
			c.out = appendSimple(c.out, "OK")
		} else {
			c.fail(codeErr, "DB index is out of range: there is one, 0")
		}
	case opCluster, opReadOnly, opReadWrite, opAsking:
		// Clients know these words, and then stop asking.
		c.fail(codeErr, "This instance has cluster support disabled")
	case opQuit:
		c.out = appendSimple(c.out, "OK")
		c.ending = true
		c.linger = c.r < c.w
	case opReset:
		c.resp3, c.name = false, ""
		c.who = c.s.firstWho(c.nc)
		c.out = appendSimple(c.out, "RESET")
	}
	return 0, 1
}

// isHTTP reports whether a command is one that a browser can be made to send, or
// that somebody who takes this port for that of HTTP sends. Redis closes the
// connection too: the body of a POST could hold commands.
func isHTTP(args [][]byte) bool {
	return isWord(args[0], "post") || isWord(args[0], "host:") ||
		len(args) == 3 && strings.HasPrefix(string(args[2]), "HTTP/")
}

// unknownCommand is Redis' text for it, which clients know.
func unknownCommand(args [][]byte) string {
	const most = 128
	var b strings.Builder
	fmt.Fprintf(&b, "unknown command '%.*s', with args beginning with: ", most, args[0])
	for left := most; len(args) > 1 && left > 0; args = args[1:] {
		a := args[1][:min(len(args[1]), left)]
		fmt.Fprintf(&b, "'%s' ", a)
		left -= len(a) + len("'' ")
	}
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
				c.fail(codeErr, "Protocol version is not an integer or out of range: it is 2 or 3")
			} else {
				c.fail("NOPROTO", "unsupported protocol version: it is 2 or 3")
			}
			return
		}
		for rest := args[2:]; len(rest) > 0; {
			switch {
			case isWord(rest[0], "auth") && len(rest) >= 3:
				secret, rest = rest[2], rest[3:]
			case isWord(rest[0], "setname") && len(rest) >= 2:
				if !c.checkName(rest[1]) {
					return
				}
				name, rest = string(rest[1]), rest[2:]
			default:
				c.fail(codeErr, fmt.Sprintf("Syntax error in HELLO option '%.64s': it is HELLO [2|3 [AUTH user secret] [SETNAME name]]", rest[0]))
				return
			}
		}
	}
	if secret != nil && !c.login(secret) {
		return
	}
	if c.may(auth.Anything, "") != nil {
		c.fail(service.Unauthorized.RESP(), "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
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
	b = appendBulk(appendBulk(b, "firn_version"), c.s.c.Version)
	b = appendInt(appendBulk(b, "proto"), proto)
	b = appendInt(appendBulk(b, "id"), c.id)
	b = appendBulk(appendBulk(b, "mode"), "standalone")
	b = appendBulk(appendBulk(b, "role"), "master")
	c.out = appendArray(appendBulk(b, "modules"), 0)
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

// maxClientName is the length of the longest name of a connection.
const maxClientName = 256

// checkName answers with an error if a connection cannot have the name.
func (c *conn) checkName(name []byte) bool {
	for _, b := range name {
		if b <= ' ' || b > '~' {
			c.fail(codeErr, "Client names cannot contain spaces, newlines or special characters.")
			return false
		}
	}
	if len(name) > maxClientName {
		c.fail(codeErr, fmt.Sprintf("Client names have at most %d characters.", maxClientName))
		return false
	}
	return true
}

// client answers CLIENT.
func (c *conn) client(args [][]byte) {
	sub, n := args[1], len(args)
	isSwitch := func() bool { return n == 3 && (isWord(args[2], "on") || isWord(args[2], "off")) }
	switch {
	case isWord(sub, "id") && n == 2:
		c.out = appendInt(c.out, c.id)
	case isWord(sub, "getname") && n == 2 && c.name == "":
		c.out = appendNull(c.out, c.resp3)
	case isWord(sub, "getname") && n == 2:
		c.out = appendBulk(c.out, c.name)
	case isWord(sub, "setname") && n == 3:
		if c.checkName(args[2]) {
			c.name = string(args[2])
			c.out = appendSimple(c.out, "OK")
		}
	case isWord(sub, "setinfo") && n == 4 && (isWord(args[2], "lib-name") || isWord(args[2], "lib-ver")):
		c.out = appendSimple(c.out, "OK") // nobody asks for it
	case (isWord(sub, "no-evict") || isWord(sub, "no-touch")) && isSwitch():
		c.out = appendSimple(c.out, "OK") // no client is evicted, and there are no keys to touch
	default:
		c.fail(codeErr, fmt.Sprintf("unknown subcommand or wrong number of arguments for '%.64s': it is %s", sub, find([]byte("client")).usage))
	}
}

// command answers COMMAND.
func (c *conn) command(args [][]byte) {
	switch {
	case len(args) == 1:
		b := appendArray(c.out, len(commands))
		for i := range commands {
			b = commands[i].appendInfo(b, c.resp3)
		}
		c.out = b
	case isWord(args[1], "count") && len(args) == 2:
		c.out = appendInt(c.out, int64(len(commands)))
	case isWord(args[1], "list") && len(args) == 2:
		b := appendArray(c.out, len(commands))
		for i := range commands {
			b = appendBulk(b, commands[i].name)
		}
		c.out = b
	case isWord(args[1], "info"):
		names := commandNames(args[2:])
		b := appendArray(c.out, len(names))
		for _, name := range names {
			if cmd := find(name); cmd != nil {
				b = cmd.appendInfo(b, c.resp3)
			} else {
				b = appendNoArray(b, c.resp3)
			}
		}
		c.out = b
	case isWord(args[1], "docs"):
		var known []*command
		for _, name := range commandNames(args[2:]) {
			if cmd := find(name); cmd != nil {
				known = append(known, cmd)
			}
		}
		b := appendMap(c.out, c.resp3, len(known))
		for _, cmd := range known {
			b = appendBulk(b, cmd.name)
			b = appendMap(b, c.resp3, 2)
			b = appendBulk(appendBulk(b, "summary"), cmd.about+": "+cmd.usage)
			b = appendBulk(appendBulk(b, "group"), cmd.group())
		}
		c.out = b
	default:
		c.fail(codeErr, fmt.Sprintf("unknown subcommand or wrong number of arguments for '%.64s': it is %s", args[1], find([]byte("command")).usage))
	}
}

// commandNames are the names, or those of all commands where there are none.
func commandNames(names [][]byte) [][]byte {
	if len(names) == 0 {
		for i := range commands {
			names = append(names, []byte(commands[i].name))
		}
	}
	return names
}

// appendInfo appends a command as COMMAND has it since Redis 7.
func (c *command) appendInfo(b []byte, resp3 bool) []byte {
	b = appendArray(b, 10)
	b = appendBulk(b, c.name)
	b = appendInt(b, c.arity())
	b = appendSet(b, resp3, len(c.flags))
	for _, f := range c.flags {
		b = appendSimple(b, f)
	}
	key := int64(0)
	if c.key {
		key = 1
	}
	for range 3 { // the first key, the last and the step
		b = appendInt(b, key)
	}
	b = appendSet(b, resp3, 0) // ACL categories: there are none
	b = appendArray(b, 0)      // tips
	b = appendArray(b, 0)      // key specifications: the three numbers say it all
	return appendArray(b, 0)   // subcommands
}

// appendNoArray appends what stands for an array that there is not.
func appendNoArray(b []byte, resp3 bool) []byte {
	if resp3 {
		return appendNull(b, true)
	}
	return append(b, "*-1\r\n"...)
}
