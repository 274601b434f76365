package server

import (
	"math"

	"github.com/firnid/firn/server/internal/protocol/listen"
)

// Open files that connections must leave free.
const (
	ownFiles   = 32   // for the program, its listeners and its log
	storeShare = 4    // one in so many is for the store and connections to other servers
	storeMost  = 1024 // the most that the store can use
	refusing   = 64   // per listener, for connections that are being refused
	leastConns = 4    // per listener, in any case
)

// connsWithin returns how many connections each listener may have if the
// process can open this many files and want connections are wanted. Without a
// limit, clients could take the files that the store needs to renew node IDs.
func connsWithin(files, listeners, want int) int {
	left := files - ownFiles - min(files/storeShare, storeMost)
	return max(leastConns, min(want, left/max(1, listeners)-refusing))
}

// openFiles returns how many files this process may have open; MaxInt if the
// number is unlimited or unknown.
func openFiles() int {
	n, err := listen.OpenFiles()
	if err != nil || n > math.MaxInt32 {
		return math.MaxInt
	}
	return int(n)
}

// maxConns returns connsWithin for this process. It logs a warning if that is
// less than configured.
func (s *Server) maxConns(listeners int) int {
	files := openFiles()
	n := connsWithin(files, listeners, s.c.MaxConns)
	if n < s.c.MaxConns {
		s.c.Log.Warn("fewer connections than configured: the system limits open files", "connections", n, "configured", s.c.MaxConns, "files", files, "hint", "raise the limit: ulimit -n, or LimitNOFILE= of systemd")
	}
	return n
}
