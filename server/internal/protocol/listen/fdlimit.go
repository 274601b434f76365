package listen

// Open files that connections must leave free.
const (
	ownFiles      = 32   // for the program, its listeners and its log
	storeShare    = 4    // one in so many is for the store and connections to other servers
	maxStoreFiles = 1024 // the most that the store can use
	refusalFiles  = 64   // per listener, for connections that are being refused
	minConns      = 4    // per listener, in any case
)

// ConnsWithin returns how many connections each listener may have if the
// process can open this many files and want connections are wanted. Without a
// limit, clients could take the files that the store needs to renew node IDs.
func ConnsWithin(files uint64, listeners, want int) int {
	left := files - min(files, ownFiles+min(files/storeShare, maxStoreFiles))
	each := left / uint64(max(1, listeners))
	return int(max(minConns, min(uint64(want), each-min(each, refusalFiles))))
}

// FilesFor returns how many files the process must be able to open for each
// listener to have this many connections: ConnsWithin returns conns for these,
// and fewer for fewer.
func FilesFor(listeners, conns int) uint64 {
	used := ownFiles + uint64(max(1, listeners))*(refusalFiles+uint64(conns))
	return used + min((used-1)/(storeShare-1), maxStoreFiles)
}
