package server

// Files that connections leave to others.
const (
	ownFiles   = 32   // of the program, its listeners and its log
	storeShare = 4    // one of so many is for the store, and for connections to other servers
	storeMost  = 1024 // as much as it uses
	refusing   = 64   // of a listener, for connections that are being refused
	leastConns = 4    // of a listener, in any case
)

// connsWithin is how many connections each listener can have if so many files
// can be open and want is how many are wanted. Without that, clients could take
// the files that the store needs to renew what this server holds.
func connsWithin(files, listeners, want int) int {
	left := files - ownFiles - min(files/storeShare, storeMost)
	return max(leastConns, min(want, left/max(1, listeners)-refusing))
}

// maxConns is connsWithin for this process. It logs if that is less than was
// configured.
func (s *Server) maxConns(listeners int) int {
	files := openFiles()
	n := connsWithin(files, listeners, s.c.MaxConns)
	if n < s.c.MaxConns {
		s.c.Log.Warn("fewer connections than configured: the system limits open files", "connections", n, "configured", s.c.MaxConns, "files", files, "hint", "raise the limit: ulimit -n, or LimitNOFILE= of systemd")
	}
	return n
}
