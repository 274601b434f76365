package respapi

import (
	"fmt"
	"time"
)

// maxClientName is the length of the longest name of a connection.
const maxClientName = 256

// A library is what a client reports about itself with CLIENT SETINFO.
type library struct{ name, version string }

// appendInfo appends the connection in the form of CLIENT INFO, with those
// fields of Redis that have a meaning here.
func (c *conn) appendInfo(b []byte) []byte {
	resp := 2
	if c.resp3 {
		resp = 3
	}
	return fmt.Appendf(b, "id=%d addr=%s laddr=%s name=%s age=%d db=0 user=default resp=%d lib-name=%s lib-ver=%s\n",
		c.id, c.nc.RemoteAddr(), c.nc.LocalAddr(), c.name, time.Since(c.accepted)/time.Second, resp, c.library.name,
		c.library.version)
}

// checkName answers with an error if the text is not allowed as the name or
// value of a connection; what says which of them it is.
func (c *conn) checkName(what string, text []byte) bool {
	for _, b := range text {
		if b <= ' ' || b > '~' {
			c.fail(what + " cannot contain spaces, newlines or special characters.")
			return false
		}
	}
	if len(text) > maxClientName {
		c.fail(fmt.Sprintf("%s are limited to %d characters.", what, maxClientName))
		return false
	}
	return true
}

// client answers CLIENT.
func (c *conn) client(args [][]byte) {
	sub, n := args[1], len(args)
	switch {
	case isWord(sub, "id") && n == 2:
		c.out = appendInt(c.out, c.id)
	case isWord(sub, "info") && n == 2:
		c.out = appendVerbatim(c.out, c.resp3, c.appendInfo(nil))
	case isWord(sub, "getname") && n == 2 && c.name == "":
		c.out = appendNull(c.out, c.resp3)
	case isWord(sub, "getname") && n == 2:
		c.out = appendBulk(c.out, c.name)
	case isWord(sub, "setname") && n == 3:
		c.set(&c.name, "Client names", args[2])
	case isWord(sub, "setinfo") && n == 4 && isWord(args[2], "lib-name"):
		c.set(&c.library.name, "Values of lib-name", args[3])
	case isWord(sub, "setinfo") && n == 4 && isWord(args[2], "lib-ver"):
		c.set(&c.library.version, "Values of lib-ver", args[3])
	case isWord(sub, "tracking") && n >= 3 && (isWord(args[2], "on") || isWord(args[2], "off")):
		c.tracks = isWord(args[2], "on")
		c.out = appendSimple(c.out, "OK")
	case isWord(sub, "caching") && n == 3 && (isWord(args[2], "yes") || isWord(args[2], "no")):
		c.out = appendSimple(c.out, "OK")
	case isWord(sub, "trackinginfo") && n == 2:
		c.out = c.appendTracking(c.out)
	default:
		c.fail(fmt.Sprintf("unknown subcommand or wrong number of arguments for '%.64s': use %s", sub, c.cmd.usage))
	}
}

// appendTracking appends what CLIENT TRACKINGINFO answers. Clients that cache
// begin with CLIENT TRACKING ON, and fail if it is refused. No command reads a
// key that changes, so there is nothing to tell them.
func (c *conn) appendTracking(b []byte) []byte {
	flag, redirect := "off", int64(-1)
	if c.tracks {
		flag, redirect = "on", 0
	}
	b = appendTexts(appendBulk(appendMap(b, c.resp3, 3), "flags"), []string{flag})
	b = appendInt(appendBulk(b, "redirect"), redirect)
	return appendTexts(appendBulk(b, "prefixes"), nil)
}

// set answers a command that sets a text of the connection.
func (c *conn) set(text *string, what string, value []byte) {
	if c.checkName(what, value) {
		*text = string(value)
		c.out = appendSimple(c.out, "OK")
	}
}
