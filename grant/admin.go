package grant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Create creates a sequencer, or creates a destroyed one again, and returns it.
// If it already exists with the same configuration, nothing happens. If it
// exists with another one, the error matches ErrMismatch. If it was moved to
// another store, the error matches ErrMoved. A destroyed sequencer keeps its
// layout, so that new IDs never repeat old ones. A layout whose time has ended
// is refused with an error that matches firn.ErrTimeOver. A floor that is later
// than that of an existing sequencer is another configuration.
func Create(ctx context.Context, s Store, name string, c Config, o *CreateOptions) (Info, error) {
	if err := errors.Join(CheckName(name), c.Check()); err != nil {
		return Info{}, err
	}
	opt := *cmp.Or(o, new(CreateOptions))
	now := clockOr(opt.Now)()
	if !inRange(ms(now)) || !inRange(ms(cmp.Or(opt.Floor, now))) {
		return Info{}, fmt.Errorf("grant: sequencer %s: the clock reads %s and the floor is %s, but records have "+
			"times from %s to %s",
			name, timeText(now), timeText(opt.Floor), timeText(timeOf(-maxTime)), timeText(timeOf(maxTime)))
	}
	return changeConfig(ctx, s, name, "create", func(r *Info) (write bool, err error) {
		fresh := newInfo(name, c)
		fresh.Created, fresh.fenceFloor = timeOf(ms(now)), r.fenceFloor
		fresh.createFloor = later(r.createFloor, opt.Floor)
		if r.Incarnation == 0 || r.State == Purged || r.State == Destroyed {
			if err := c.checkTime(name, now); err != nil {
				return false, err
			}
		}
		switch {
		case r.Incarnation == 0:
			*r = fresh
			return true, nil
		case r.MovedTo != "":
			return false, movedError(name, r.MovedTo)
		case r.State == Purged:
			// Its records stay, as the marks of the node IDs.
		case r.State == Destroyed:
			kept := c
			kept.Layout, kept.Prefix = r.Config.Layout, cmp.Or(r.Config.Prefix, c.Prefix)
			if err := kept.compare(name, c); err != nil {
				return false, err
			}
		case r.State == Destroying:
			return false, beingDestroyedError(name)
		default:
			// If the value that was read is lost, so is an unused sequencer.
			// Its range and floor must not be: another generator may have the
			// rest.
			if want, have := c.Nodes.String(), r.Config.Nodes.String(); c.Nodes != nil && want != have {
				return false, mismatchError(name, "nodes", have, want)
			}
			if want, have := c.Layout.String(), r.Config.Layout.String(); want != have {
				return false, mismatchError(name, "layout", have, want) // by the key even, at least
			}
			if r.Floor.Before(fresh.laterFloor()) {
				return false, mismatchError(name, "floor", timeText(r.Floor), timeText(fresh.laterFloor()))
			}
			return c.Nodes != nil || !opt.Floor.IsZero(), r.Config.compare(name, c)
		}
		fresh.Incarnation, fresh.LongestWindow = r.Incarnation+1, r.LongestWindow
		fresh.Config.Nodes = cmp.Or(c.Nodes, r.Config.Nodes)
		fresh.Config.Prefix = cmp.Or(c.Prefix, r.Config.Prefix)
		*r = fresh
		return true, nil
	})
}

// CreateOptions configure Create. Nil and the zero CreateOptions mean the
// defaults.
type CreateOptions struct {
	// Now is the clock; nil means the system clock.
	Now func() time.Time

	// Floor is a time before which the sequencer makes no IDs, such as that of
	// another generator's last ID; the zero time means none.
	Floor time.Time
}

// WaitOptions configure the operations that wait until windows have ended:
// Detach, Destroy, SetNodes and Move. Nil and the zero WaitOptions mean the
// defaults.
type WaitOptions struct {
	// Now is the clock; nil means the system clock.
	Now func() time.Time

	// Waiting is called with the node IDs whose windows have not yet ended,
	// whenever that list changes, by the goroutine that called the operation.
	// It may be nil.
	Waiting func([]NodeInfo)
}

// Attach makes a detached sequencer usable again, and ends a Detach in
// progress. An attached one stays attached. The error matches ErrMoved if
// another store has it now, and ErrDestroyed if it must be created again.
func Attach(ctx context.Context, s Store, name string) (Info, error) {
	return changeUsable(ctx, s, name, "attach", func(r *Info) (write bool, err error) {
		r.State = Attached // even if it already was
		return true, nil
	})
}

// Detach makes all members of a sequencer give their node IDs back, and
// prevents them from acquiring new ones until Attach. It returns when all
// windows have been given back or have ended. If it is interrupted, call it
// again to continue. The error of a destroyed sequencer matches ErrDestroyed.
func Detach(ctx context.Context, s Store, name string, o *WaitOptions) (Info, error) {
	return closeWindows(ctx, s, name, "detach", Detaching, Detached, o)
}

// Destroy makes all members of a sequencer give their node IDs back, for good.
// IDs that were handed out stay unique: the records are kept, and a sequencer
// created again under the same name continues after them. Destroy returns when
// all windows have been given back or have ended. If it is interrupted, call it
// again to continue.
func Destroy(ctx context.Context, s Store, name string, o *WaitOptions) (Info, error) {
	return closeWindows(ctx, s, name, "destroy", Destroying, Destroyed, o)
}

// Purge allows a destroyed sequencer to be created again with another layout.
// That gives up uniqueness between the old and the new IDs: another layout
// divides the bits differently, so both may contain the same numbers. A
// sequencer that is not destroyed is an error.
func Purge(ctx context.Context, s Store, name string) (Info, error) {
	return changeExisting(ctx, s, name, "purge", func(r *Info) (write bool, err error) {
		if r.State != Destroyed && r.State != Purged {
			return false, fmt.Errorf("grant: sequencer %s is %v: destroy it before you purge it", name, r.State)
		}
		r.State = Purged
		return true, nil
	})
}

// SetWindow changes how long the windows of a sequencer are, see Config.Window,
// with one write, while its members run. They read it within 20 seconds, and
// use it from their next renewal on. Windows that were granted before keep
// their end. Its layout and MaxAhead never change: IDs of another layout may
// equal earlier ones, and a fence relies on MaxAhead.
func SetWindow(ctx context.Context, s Store, name string, window time.Duration) (Info, error) {
	return changeUsable(ctx, s, name, "window", func(r *Info) (write bool, err error) {
		write = r.Config.Window != window
		r.Config.Window = window // changeConfig raises LongestWindow in the same write
		return write, r.Config.Check()
	})
}

// SetNodes changes the node IDs that members of a sequencer may take in this
// store; nil means all of the layout. To widen them takes one write. To narrow
// them, it makes the members that hold others give these back, as Detach does,
// and returns at the time of HandOverTime for those: only then may another store or
// generator use them. If that is more than two windows away, as after a fence,
// the range is changed and the error matches ErrEarly. If it is interrupted,
// call it again to continue. It is independent of the ranges that members were
// opened with.
func SetNodes(ctx context.Context, s Store, name string, nodes *NodeRange, o *WaitOptions) (Info, error) {
	closer := newWindowCloser()
	closer.spared = nodes
	ended := "" // the nonce with which all windows had ended
	return pollUntilFinished(ctx, o, func(now time.Time) (info Info, waiting []NodeInfo, finished bool, err error) {
		info, err = changeUsable(ctx, s, name, "nodes", func(r *Info) (write bool, err error) {
			switch have := r.Config.Nodes.String(); {
			case closer.nonce != "" && have != nodes.String():
				return false, fmt.Errorf("grant: sequencer %s was given the node IDs %s in the meantime, not %v: "+
					"call it again to change them", name, have, nodes)
			case r.nonce == closer.nonce:
				return false, nil
			default:
				r.Config.Nodes = nodes // even if they are the same: see windowCloser.step
				return true, nodes.Check(r.Config.Layout)
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
		case err != nil:
			return info, nil, false, err
		case left > 2*info.LongestWindow+Skew:
			return info, nil, false, kindErrorf(ErrEarly, "members of sequencer %s take the node IDs %v only, but may "+
				"have used others up to %s: another store or generator may use these from then on",
				name, nodes, timeText(at))
		case finished && left > 0:
			first := uint64(0) // outside of the range
			if nodes.Lo == 0 {
				first = nodes.Hi + 1
			}
			waiting, finished = []NodeInfo{{Node: first, Until: at}}, false
		}
		return info, waiting, finished, nil
	})
}
