package respapi

import (
	"bytes"
	"fmt"
	"runtime/metrics"

	"github.com/firnid/firn/server/internal/access/auth"
)

// redisVersion is the Redis version that this server imitates for commands that
// clients send on their own. Clients use it to decide what they can send.
const redisVersion = "7.4.0"

// info answers INFO: lines of name:value in sections, as in Redis. It has what
// client libraries need and what redis-cli --stat reads. A client that may only
// take IDs gets nothing about the server's state.
func (c *conn) info(args [][]byte) {
	s := c.s
	var b []byte
	section := func(name string, lines ...any) {
		if !wanted(args[1:], name) {
			return
		}
		if len(b) > 0 {
			b = append(b, "\r\n"...)
		}
		b = fmt.Appendf(b, "# %s\r\n", name)
		for i := 0; i < len(lines); i += 2 {
			b = fmt.Appendf(b, "%v:%v\r\n", lines[i], lines[i+1])
		}
	}
	section("Server", "redis_version", redisVersion, "firn_version", s.c.Version, "redis_mode", "standalone")
	if c.may(auth.See, "") == nil {
		memory := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(memory)
		section("Clients", "connected_clients", s.Conns(), "blocked_clients", s.waiting.Load())
		section("Memory", "used_memory", memory[0].Value.Uint64())
		section("Stats", "total_connections_received", s.lastID.Load(), "total_commands_processed", s.answered.Load()+int64(c.done.commands))
	}
	section("Persistence", "loading", 0, "rdb_bgsave_in_progress", 0, "aof_rewrite_in_progress", 0) // ioredis waits until loading is 0
	section("Replication", "role", "master")
	section("Cluster", "cluster_enabled", 0)
	c.out = appendVerbatim(c.out, c.resp3, b)
}

// wanted reports whether a section was requested.
func wanted(names [][]byte, section string) bool {
	for _, name := range names {
		if isWord(name, "all") || isWord(name, "everything") || isWord(name, "default") || bytes.EqualFold(name, []byte(section)) {
			return true
		}
	}
	return len(names) == 0
}
