package grant

import (
	"fmt"

	"github.com/firnid/firn"
)

// A NodeRange is the range of node IDs from Lo to Hi, both inclusive. The zero
// NodeRange is node ID 0 alone; a nil pointer means all.
type NodeRange struct{ Lo, Hi uint64 }

// String returns the range as LO..HI, and nil as all.
func (r *NodeRange) String() string {
	if r == nil {
		return "all"
	}
	return fmt.Sprintf("%d..%d", r.Lo, r.Hi)
}

// Has reports whether a node ID is in the range. nil has all.
func (r *NodeRange) Has(node uint64) bool { return r == nil || r.Lo <= node && node <= r.Hi }

// Check returns an error if a layout does not have the node IDs of the range,
// or if the range is empty. nil fits every layout.
func (r *NodeRange) Check(l firn.Layout) error {
	switch {
	case r != nil && r.Lo > r.Hi:
		return fmt.Errorf("grant: node IDs %d..%d: the first must not exceed the last", r.Lo, r.Hi)
	case r != nil && r.Hi > l.MaxNode():
		return fmt.Errorf("grant: node IDs %v do not fit layout %s, which has 0..%d", r, l, l.MaxNode())
	}
	return nil
}
