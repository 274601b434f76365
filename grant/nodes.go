package grant

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// SetNodes changes the node IDs that members of a sequencer may take in this
// store; nil means all of the layout. To widen them takes one write. To narrow
// them, it makes the members that hold others give these back, as DetachAll
// does, and returns when all their windows have been given back or have ended:
// only then may another store use them. If it is interrupted, call it again to
// continue. It is independent of the ranges that members were opened with.
func SetNodes(ctx context.Context, s Store, name string, nodes *Range, o *AdminOptions) (Info, error) {
	done := newEmptying()
	done.only = nodes
	return repeat(ctx, o, func(now time.Time) (info Info, waiting []NodeInfo, finished bool, err error) {
		info, begun, err := changeUsable(ctx, s, name, func(r *configRecord) (write bool, err error) {
			switch want := nodes.record(); {
			case nodes.Check(r.Layout) != nil:
				return false, nodes.Check(r.Layout)
			case done.begun != nil && r.Nodes != want:
				return false, fmt.Errorf("grant: sequencer %s was given the node IDs %v in the meantime, not %v: call it again to change them", name, r.Nodes, want)
			case bytes.Equal(r.encode(), done.begun):
				return false, nil
			default:
				r.Nodes = want // even if they are the same: see emptyStep
				return true, nil
			}
		})
		if err != nil || nodes == nil {
			return info, nil, true, err
		}
		if !bytes.Equal(begun, done.begun) {
			done.begun, done.sure = begun, make(map[string]bool)
		}
		begun, waiting, err = done.ended(ctx, s, info, begun, ms(now))
		return info, waiting, begun != nil, err
	})
}
