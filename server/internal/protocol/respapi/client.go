package respapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
)

// maxClientName is the length of the longest name of a connection.
const maxClientName = 256

// A library is what a client reports about itself with CLIENT SETINFO.
type library struct{ name, version string }

// A listing is what other connections see of a connection in CLIENT LIST.
type listing struct {
	began time.Time

	active atomic.Int64            // when it last sent answers, in nanoseconds since 1970
	last   atomic.Pointer[command] // the last command it answered; nil before the first

	mu      sync.Mutex // guards the fields below
	name    string
	library library
	resp3   bool
	multi   bool
}

// publish makes changes visible to other connections.
func (c *conn) publish() {
	l := &c.listing
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name, l.library, l.resp3, l.multi = c.name, c.library, c.resp3, c.tx != nil
}

// appendListing appends a connection in the form of CLIENT LIST, with those
// fields of Redis that have a meaning here.
func (c *conn) appendListing(b []byte, now time.Time) []byte {
	l := &c.listing
	l.mu.Lock()
	defer l.mu.Unlock()
	flags, multi, resp := "N", -1, 2
	if l.multi {
		flags, multi = "x", 0
	}
	if l.resp3 {
		resp = 3
	}
	last := "NULL" // as in Redis, before the first
	if cmd := l.last.Load(); cmd != nil {
		last = cmd.name
	}
	active := l.began
	if at := l.active.Load(); at != 0 {
		active = time.Unix(0, at)
	}
	seconds := func(since time.Time) int64 { return max(0, int64(now.Sub(since)/time.Second)) }
	return fmt.Appendf(b, "id=%d addr=%s laddr=%s name=%s age=%d idle=%d flags=%s db=0 sub=0 psub=0 ssub=0 multi=%d cmd=%s user=default resp=%d lib-name=%s lib-ver=%s\n",
		c.id, c.nc.RemoteAddr(), c.nc.LocalAddr(), l.name, seconds(l.began), seconds(active), flags, multi, last, resp, l.library.name, l.library.version)
}

// checkName answers with an error if the text is not allowed as the name or
// value of a connection; what says which of them it is.
func (c *conn) checkName(what string, text []byte) bool {
	for _, b := range text {
		if b <= ' ' || b > '~' {
			c.fail(codeErr, what+" cannot contain spaces, newlines or special characters.")
			return false
		}
	}
	if len(text) > maxClientName {
		c.fail(codeErr, fmt.Sprintf("%s are limited to %d characters.", what, maxClientName))
		return false
	}
	return true
}

// client answers CLIENT.
func (c *conn) client(args [][]byte) {
	sub, n := args[1], len(args)
	isSwitch := func() bool { return n == 3 && (isWord(args[2], "on") || isWord(args[2], "off")) }
	c.listing.last.Store(c.last)
	switch {
	case isWord(sub, "id") && n == 2:
		c.out = appendInt(c.out, c.id)
	case isWord(sub, "info") && n == 2:
		c.out = appendVerbatim(c.out, c.resp3, c.appendListing(nil, time.Now()))
	case isWord(sub, "list"):
		c.clientList(args[2:])
	case isWord(sub, "getname") && n == 2 && c.name == "":
		c.out = appendNull(c.out, c.resp3)
	case isWord(sub, "getname") && n == 2:
		c.out = appendBulk(c.out, c.name)
	case isWord(sub, "setname") && n == 3:
		if c.checkName("Client names", args[2]) {
			c.name = string(args[2])
			c.out = appendSimple(c.out, "OK")
			c.publish()
		}
	case isWord(sub, "setinfo") && n == 4 && (isWord(args[2], "lib-name") || isWord(args[2], "lib-ver")):
		c.setInfo(args[2], args[3])
	case (isWord(sub, "no-evict") || isWord(sub, "no-touch")) && isSwitch():
		c.out = appendSimple(c.out, "OK") // no client is evicted, and there are no keys to touch
	default:
		c.fail(codeErr, fmt.Sprintf("unknown subcommand or wrong number of arguments for '%.64s': use %s", sub, find([]byte("client")).usage))
	}
}

// setInfo answers CLIENT SETINFO.
func (c *conn) setInfo(attribute, value []byte) {
	what, to := "Values of lib-name", &c.library.name
	if isWord(attribute, "lib-ver") {
		what, to = "Values of lib-ver", &c.library.version
	}
	if !c.checkName(what, value) {
		return
	}
	*to = string(value)
	c.out = appendSimple(c.out, "OK")
	c.publish()
}

// clientList answers CLIENT LIST for clients that may see the server's state.
func (c *conn) clientList(args [][]byte) {
	if err := c.may(auth.See, ""); err != nil {
		c.deny(err, "permission denied: CLIENT LIST needs a token with the role read or admin")
		return
	}
	wanted := func(*conn) bool { return true }
	switch n := len(args); {
	case n == 0 || n == 2 && isWord(args[0], "type") && isWord(args[1], "normal"):
	case n == 2 && isWord(args[0], "type") && (isWord(args[1], "master") || isWord(args[1], "replica") || isWord(args[1], "slave") || isWord(args[1], "pubsub")):
		wanted = func(*conn) bool { return false }
	case n >= 2 && isWord(args[0], "id"):
		ids := make(map[string]bool)
		for _, id := range args[1:] {
			ids[string(id)] = true
		}
		wanted = func(o *conn) bool { return ids[strconv.FormatInt(o.id, 10)] }
	default:
		c.fail(codeErr, "syntax error: use CLIENT LIST [TYPE normal|master|replica|pubsub] [ID id [id ...]]")
		return
	}
	c.s.mu.Lock()
	all := slices.Collect(maps.Keys(c.s.conns))
	c.s.mu.Unlock()
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	var b []byte
	now := time.Now()
	for _, o := range all {
		if wanted(o) {
			b = o.appendListing(b, now)
		}
	}
	c.out = appendVerbatim(c.out, c.resp3, b)
}
