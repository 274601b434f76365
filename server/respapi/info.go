package respapi

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/firnid/firn/server/auth"
)

// redisVersion is the version of Redis whose answers to what clients send on their
// own these are. Clients read it to know what they can send.
const redisVersion = "7.4.0"

// info answers INFO: lines of name:value in sections, as Redis has them. Who may only take
// IDs gets what clients need to know, and nothing of how the server is.
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
	if c.may(auth.See, "") != nil {
		section("Server", "redis_version", redisVersion, "firn_version", s.c.Version, "redis_mode", "standalone")
		section("Persistence", "loading", 0) // ioredis waits until it is so
		section("Replication", "role", "master")
		section("Cluster", "cluster_enabled", 0)
		c.out = appendVerbatim(c.out, c.resp3, b)
		return
	}
	up := time.Since(s.started)
	section("Server",
		"redis_version", redisVersion,
		"firn_version", s.c.Version,
		"redis_mode", "standalone",
		"os", runtime.GOOS+" "+runtime.GOARCH,
		"arch_bits", 32<<(^uint(0)>>63),
		"process_id", os.Getpid(),
		"uptime_in_seconds", int64(up/time.Second),
		"uptime_in_days", int64(up/(24*time.Hour)),
	)
	section("Clients",
		"connected_clients", s.Conns(),
		"maxclients", s.c.MaxConns,
	)
	section("Persistence", "loading", 0)
	section("Stats",
		"total_connections_received", s.totalConns.Load(),
		"total_commands_processed", s.totalCommands.Load()+c.counted.commands,
		"firn_ids_given", s.totalN.Load()+c.counted.ids,
	)
	section("Replication",
		"role", "master",
		"connected_slaves", 0,
	)
	section("Cluster", "cluster_enabled", 0)
	section("Keyspace")
	c.out = appendVerbatim(c.out, c.resp3, b)
}

// wanted reports whether a section is one of those asked for.
func wanted(names [][]byte, section string) bool {
	for _, name := range names {
		if isWord(name, "all") || isWord(name, "everything") || isWord(name, "default") || bytes.EqualFold(name, []byte(section)) {
			return true
		}
	}
	return len(names) == 0
}
