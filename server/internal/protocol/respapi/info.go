package respapi

import (
	"bytes"
	"fmt"
)

// redisVersion is the Redis version that this server imitates for commands that
// clients send on their own. Clients use it to decide what they can send.
const redisVersion = "7.4.0"

// info answers INFO: lines of name:value in sections, as in Redis. It has what
// client libraries need; the state of the server is in its metrics.
func (c *conn) info(args [][]byte) {
	var b []byte
	for _, section := range []struct{ name, lines string }{
		{"Server", "redis_version:" + redisVersion + "\r\nfirn_version:" + c.server.config.Version +
			"\r\nredis_mode:standalone\r\n"},
		{"Persistence", "loading:0\r\n"}, // ioredis waits until it is 0
		{"Replication", "role:master\r\n"},
		{"Cluster", "cluster_enabled:0\r\n"},
	} {
		if isWanted(args[1:], section.name) {
			b = fmt.Appendf(b, "# %s\r\n%s\r\n", section.name, section.lines)
		}
	}
	c.out = appendVerbatim(c.out, c.resp3, b)
}

// isWanted reports whether INFO with these arguments has a section.
func isWanted(names [][]byte, section string) bool {
	for _, name := range names {
		if isWord(name, "all") || isWord(name, "everything") || isWord(name, "default") ||
			bytes.EqualFold(name, []byte(section)) {
			return true
		}
	}
	return len(names) == 0
}
