package grant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
)

// A Place is a store and the URL by which people know it.
type Place struct {
	Store Store
	URL   string // without credentials: printable ASCII, at most 512 bytes
}

func (p Place) check() error {
	if p.URL == "" || !printable(p.URL, maxMovedTo) {
		return fmt.Errorf("grant: the URL of a store, %q, is not a text of 1 to %d printable ASCII characters",
			p.URL, maxMovedTo)
	}
	return nil
}

// Move moves a sequencer to another store, and returns it as it is there. It
// detaches the sequencer as Detach does, copies every record, so that new
// windows begin above all old ones, and attaches the sequencer in the other
// store. One that is destroyed or purged is moved too, and stays so. In the
// store that it left, no node ID can be acquired any more, and operations fail
// with an ErrMoved that names the other store. Fence and Repair still work
// there, on the records that a Move back would merge. While the records are
// copied, the other store names this one in the same way, so that the sequencer
// is usable in one of the two at most.
//
// If Move is interrupted, call it again to continue; with the places exchanged,
// it moves the sequencer back. A sequencer that already exists in the other
// store must have the same layout and range of node IDs, and no member may hold
// a node ID of it. A record that cannot be read ends the move with ErrDamaged.
//
// A sequencer that was moved already is returned, and nothing is written.
func Move(ctx context.Context, from, to Place, name string, o *WaitOptions) (Info, error) {
	if err := errors.Join(CheckName(name), from.check(), to.check()); err != nil {
		return Info{}, err
	}
	source, target, err := checkMove(ctx, from, to, name, ms(clockOr(cmp.Or(o, new(WaitOptions)).Now)()))
	if err != nil {
		return Info{}, err
	}
	if source.MovedTo != "" && target.MovedTo == "" {
		return target, nil
	}
	for _, s := range []struct {
		at Store
		r  Info
	}{{from.Store, source}, {to.Store, target}} {
		// One that was moved, or is half here, is detached.
		if s.r.Incarnation > 0 && s.r.State < Destroying && s.r.MovedTo == "" {
			if _, err := Detach(ctx, s.at, name, o); err != nil {
				return Info{}, err
			}
		}
	}

	// Only a List after a write of our own shows every record, and the nonce of
	// that write tells whether the sequencer was attached meanwhile.
	begun, err := changeExisting(ctx, from.Store, name, "move", func(i *Info) (writing, error) {
		source = *i
		if i.State != Detached && i.State < Destroyed || i.MovedTo != "" && i.MovedTo != to.URL {
			return writeNothing, changedError(name, from)
		}
		return writeSame, nil
	})
	if err != nil {
		return Info{}, err
	}
	_, err = changeConfig(ctx, to.Store, name, "move", func(i *Info) (writing, error) {
		if i.Incarnation > 0 && i.State != Detached && i.State < Destroyed {
			return writeNothing, changedError(name, to)
		}
		next := source
		next.MovedTo = from.URL
		if i.Incarnation > 0 {
			next.Incarnation = max(i.Incarnation, next.Incarnation)
			next.createFloor = later(i.createFloor, next.createFloor)
			next.fenceFloor = later(i.fenceFloor, next.fenceFloor)
			next.LongestWindow = max(i.LongestWindow, next.LongestWindow)
			next.Created = timeOf(min(ms(i.Created), ms(next.Created)))
		}
		*i = next
		return writeChange, nil
	})
	if err != nil {
		return Info{}, err
	}
	records, err := nodeRecords(ctx, from.Store, name)
	if err != nil {
		return Info{}, err
	}
	for _, n := range records {
		err := n.damage
		if err == nil {
			err = copyNode(ctx, to.Store, n.key, n.record)
		}
		if err != nil {
			return Info{}, fmt.Errorf("grant: sequencer %s: node ID %d: %w", name, n.node, err)
		}
	}

	// From here on it is usable in neither, and then in the other store.
	moved, err := changeIfNonce(ctx, from.Store, name, begun.nonce, func(i *Info) {
		i.MovedTo, i.LastChange = to.URL, newChange(ctx, "move")
	})
	switch {
	case err != nil:
		return Info{}, err
	case moved == "":
		return Info{}, changedError(name, from)
	}
	return changeExisting(ctx, to.Store, name, "move", func(i *Info) (writing, error) {
		switch i.MovedTo {
		case from.URL:
			if i.MovedTo = ""; i.State == Detached {
				i.State = Attached
			}
			return writeChange, nil
		case "": // another call was faster, or a write of this one was applied after all
			return writeSame, nil
		}
		return writeNothing, changedError(name, to)
	})
}

// checkMove returns the configurations of a sequencer in both stores, or why it
// cannot be moved. The target's incarnation is 0 if it has no configuration.
func checkMove(ctx context.Context, from, to Place, name string, now int64) (source, target Info, err error) {
	source, err = Lookup(ctx, from.Store, name)
	if err != nil {
		return source, target, err
	}
	target, err = Lookup(ctx, to.Store, name)
	absent := errors.Is(err, ErrNotFound)
	if err != nil && !absent {
		return source, target, fmt.Errorf("in %s: %w", to.URL, err)
	}
	switch {
	case from.URL == to.URL, !absent && source.nonce == target.nonce: // it is random
		err = fmt.Errorf("grant: sequencer %s: %s and %s are the same store", name, from.URL, to.URL)
	case source.MovedTo != "" && source.MovedTo != to.URL:
		err = movedError(name, source.MovedTo)
	case source.MovedTo != "" && absent:
		err = fmt.Errorf("%w: %s was moved to %s, and that store lacks it now: restore that store",
			ErrNotFound, name, to.URL)
	case source.MovedTo != "" && target.MovedTo != "" && target.MovedTo != from.URL: // it was moved on
		err = fmt.Errorf("in %s: %w", to.URL, movedError(name, target.MovedTo))
	case source.MovedTo == "" && source.State == Destroying, target.MovedTo == "" && target.State == Destroying:
		err = beingDestroyedError(name)
	case !absent && target.State != Purged && !source.Config.Layout.SameIDs(target.Config.Layout):
		err = fmt.Errorf("in %s: %w", to.URL,
			mismatchError(name, "layout", target.Config.Layout.String(), source.Config.Layout.String()))
	case target.State < Destroyed && !absent && source.MovedTo == "" && target.MovedTo == "" &&
		source.Config.Nodes.String() != target.Config.Nodes.String():
		// The target's range leaves out what belongs to another store or
		// generator.
		err = fmt.Errorf("grant: sequencer %s may use node IDs %v in %s, and %v in %s: give it the same range in "+
			"both first (firn sequencer nodes %[1]s)",
			name, source.Config.Nodes, from.URL, target.Config.Nodes, to.URL)
	default:
		err = checkNodes(ctx, from, name, math.MaxInt64)
		if err == nil && source.MovedTo == "" && target.MovedTo == "" {
			err = checkNodes(ctx, to, name, now)
		}
	}
	return source, target, err
}

// checkNodes returns an error if the record of a node ID cannot be read, or is
// held after now.
func checkNodes(ctx context.Context, p Place, name string, now int64) error {
	records, err := nodeRecords(ctx, p.Store, name)
	if err != nil {
		return fmt.Errorf("in %s: %w", p.URL, err)
	}
	for _, n := range records {
		switch info := n.record.info(n.node); {
		case n.damage != nil:
			return fmt.Errorf("in %s: %w", p.URL, n.damage)
		case info.Held && ms(info.Until) >= now:
			return fmt.Errorf("grant: sequencer %s has members in %s: %s holds node ID %d: IDs that both stores "+
				"make can be equal; detach it there first (firn sequencer detach %s)",
				name, p.URL, info.Host, n.node, name)
		}
	}
	return nil
}

func changedError(name string, p Place) error {
	return fmt.Errorf("grant: sequencer %s was changed in %s during the move: look at it (firn sequencer show %s), "+
		"and call it again to continue", name, p.URL, name)
}

// copyNode adds what a record says to that of another store.
func copyNode(ctx context.Context, s Store, key string, r nodeRecord) error {
	var refused error
	err := settle(ctx, s, key, func(old []byte, _ bool) []byte {
		next := r
		if old != nil {
			var there nodeRecord
			if there, refused = decodeNode(key, old); refused != nil {
				return nil
			}
			next = mergeRecords(r, there)
		}
		next.State, next.Nonce = nodeFree, newToken(random)
		next.From, next.Replaced = optionalTime{}, recordID{}
		return next.encode()
	})
	return cmp.Or(refused, err)
}
