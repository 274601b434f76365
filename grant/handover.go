package grant

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SetNodes changes the node IDs that members of a sequencer may take in this
// store; nil means all of the layout. To widen them takes one write. To narrow
// them, it makes the members that hold others give these back, as Detach does,
// and returns at the time of HandOverTime for those: only then may another
// store or generator use them. If that is more than two windows away, as after
// a fence, the range is changed and the error matches ErrEarly. If it is
// unknown, because the record of such a node ID is damaged, the range is
// changed and the error matches ErrDamaged: replace the record and fence, or
// choose a range that keeps this node ID, and call it again. If it is
// interrupted, call it again to continue. It is independent of the ranges that
// members were opened with.
func SetNodes(ctx context.Context, s Store, name string, nodes *NodeRange, o *WaitOptions) (Info, error) {
	closer := newWindowCloser()
	closer.spared = nodes
	ended := "" // the nonce with which all windows had ended
	return pollUntilFinished(ctx, o, func(now time.Time) (info Info, waiting []Wait, finished bool, err error) {
		info, err = changeUsable(ctx, s, name, "nodes", func(i *Info) (writing, error) {
			switch have := i.Config.Nodes.String(); {
			case closer.nonce != "" && have != nodes.String():
				return writeNothing, fmt.Errorf("grant: sequencer %s was given the node IDs %s in the meantime, not %v: "+
					"call it again to change them", name, have, nodes)
			case i.nonce == closer.nonce:
				return writeNothing, nil
			case have == nodes.String():
				return writeSame, nil // see windowCloser.step
			default:
				i.Config.Nodes = nodes
				return writeChange, nodes.Check(i.Config.Layout)
			}
		})
		if err != nil || nodes == nil || nodes.Lo == 0 && nodes.Hi == info.Config.Layout.MaxNode() {
			return info, nil, true, err
		}
		if finished = info.nonce == ended; !finished {
			if waiting, finished, err = closer.closeAndVerify(ctx, s, info, ms(now)); err != nil {
				return info, waiting, false, err
			}
		}
		if finished {
			ended = closer.nonce
		}
		at, err := HandOverTime(ctx, s, info, func(node uint64) bool { return !nodes.Has(node) })
		switch left := at.Sub(now); {
		case errors.Is(err, ErrDamaged):
			return info, nil, false, fmt.Errorf("grant: members of sequencer %s take the node IDs %v only, but no other "+
				"store or generator may use the rest yet: %w", name, nodes, err)
		case err != nil:
			return info, nil, false, err
		case left > 2*info.LongestWindow+MaxSkew:
			return info, nil, false, kindErrorf(ErrEarly, "members of sequencer %s take the node IDs %v only, but may "+
				"have used others up to %s: another store or generator may use these from then on",
				name, nodes, timeText(at))
		case finished && left > 0:
			waiting, finished = []Wait{{Why: WaitHandOver, Until: at}}, false
		}
		return info, waiting, finished, nil
	})
}

// HandOverTime returns when another store, or another generator, may begin to
// use node IDs of a sequencer that its members give up, those for which gives
// returns true: when all clocks that are within MaxSkew have passed everything
// that was granted of them. This store alone knows what that is, and members
// may have used times ahead of the clock. For node IDs without a record, and
// whatever a fenced store has lost, that is the floor. It is the zero time if
// no such node ID was ever used.
//
// If the record of such a node ID is damaged, the time is unknown, and may be
// far away: a wrong clock may have claimed it, or a repair may have left
// windows above its mark. The error then matches ErrDamaged. Keys that no node
// ID of the layout has are left out, as everywhere.
func HandOverTime(ctx context.Context, s Store, i Info, gives func(node uint64) bool) (time.Time, error) {
	end := ms(i.Floor)
	records, err := nodeRecords(ctx, s, i.Name)
	if err != nil {
		return time.Time{}, err
	}
	for _, n := range records {
		switch {
		case n.key != nodeKey(i.Name, n.node, i.Config.Layout.MaxNode()) || !gives(n.node):
		case n.damage != nil:
			return time.Time{}, fmt.Errorf("grant: sequencer %s: it is unknown up to when node ID %d was used: %w",
				i.Name, n.node, n.damage)
		default:
			end = max(end, n.record.windowsEnd()) // a repair leaves windows above the mark
		}
	}
	if end == never {
		return time.Time{}, nil
	}
	return timeOf(end).Add(MaxSkew), nil
}
