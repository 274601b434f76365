package respapi

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/access/auth"
)

// settings returns the Redis settings that clients and tools ask for and that
// have a counterpart here. The values of the last ones are only for clients
// that may see the server's state.
func (c *conn) settings() [][2]string {
	all := [][2]string{
		{"appendonly", "no"},
		{"databases", "1"},
		{"maxmemory", "0"},
		{"maxmemory-policy", "noeviction"},
		{"notify-keyspace-events", ""},
		{"save", ""},
	}
	if c.may(auth.See, "") != nil {
		return all
	}
	return append(all,
		[2]string{"maxclients", strconv.Itoa(c.s.c.MaxConns)},
		[2]string{"proto-max-bulk-len", strconv.Itoa(c.s.c.MaxBytes)},
		[2]string{"timeout", strconv.FormatInt(int64(c.s.c.IdleTimeout/time.Second), 10)},
	)
}

// config answers CONFIG.
func (c *conn) config(args [][]byte) {
	if !isWord(args[1], "get") {
		c.fail(codeErr, fmt.Sprintf("CONFIG %.64s is not supported: configure firn serve with its flags and its file", args[1]))
		return
	}
	if len(args) == 2 {
		c.fail(codeErr, "wrong number of arguments for 'config|get' command: use "+find([]byte("config")).usage)
		return
	}
	var found [][2]string
	for _, s := range c.settings() {
		for _, pattern := range args[2:] {
			if ok, err := path.Match(strings.ToLower(string(pattern)), s[0]); ok && err == nil {
				found = append(found, s)
				break
			}
		}
	}
	b := appendMap(c.out, c.resp3, len(found))
	for _, s := range found {
		b = appendBulk(appendBulk(b, s[0]), s[1])
	}
	c.out = b
}
