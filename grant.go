package firn

import "time"

// A Grant is the exclusive right to make IDs with a node ID for times in
// [From, Until): one window. It is plain data.
//
// A zero From means that nothing is known of what the node ID made before,
// see StaticGrant. A zero Until means no end. A generator rounds From up to a
// tick and Until down.
type Grant struct {
	Node  uint64    // 0 to the layout's MaxNode
	From  time.Time // inclusive
	Until time.Time // exclusive
}

// StaticGrant is the grant of a node ID that somebody else keeps unique:
// a number from a configuration, for instance. It has no limits in time.
//
// A generator of a static grant starts one tick after its first call's clock
// plus MaxAhead, so a process that is restarted at once, with a MaxAhead no
// smaller than before, repeats nothing. That rests on the clock: if it is set
// back while the process is down, or if two processes have the number at the
// same time, IDs can repeat. Only a number held through a store is safe from
// both.
//
// A batch under a static grant spans at most a minute, or what MaxAhead allows
// at once if that is more: there is no end of the grant that would bound it.
// Larger ones are ErrBatchTooLarge. Reservations run ahead of what MaxAhead
// allows by at most as much. A restart knows nothing of them, so do not let a
// reserved batch out of the process before its hold has ended.
func StaticGrant(node uint64) Grant { return Grant{Node: node} }
