package firn

import "time"

// A Grant is the exclusive right to make IDs with a node ID for the times in
// [From, Until), which is called a window. It is plain data.
//
// A zero From means that it is unknown when the node ID was used before; see
// StaticGrant. A zero Until means no end. A generator rounds From up to a tick
// and Until down.
type Grant struct {
	Node  uint64    // 0 to the layout's MaxNode
	From  time.Time // inclusive
	Until time.Time // exclusive
}
