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
// or not begun is refused with the error of its CheckTime. A floor that is later
// than that of an existing sequencer is another configuration, and so is a
// layout without all node IDs of the range that a purged one keeps.
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
	return changeConfig(ctx, s, name, "create", func(i *Info) (writing, error) {
		fresh := newInfo(name, c)
		fresh.Created, fresh.fenceFloor = timeOf(ms(now)), i.fenceFloor
		fresh.createFloor = later(i.createFloor, opt.Floor)
		if i.Incarnation == 0 || i.State == Purged || i.State == Destroyed {
			if err := c.checkTime(name, now); err != nil {
				return writeNothing, err
			}
		}
		switch {
		case i.Incarnation == 0:
			*i = fresh
			return writeChange, nil
		case i.MovedTo != "":
			return writeNothing, movedError(name, i.MovedTo)
		case i.State == Purged:
			// Its records stay, as the marks of the node IDs.
		case i.State == Destroyed:
			kept := c
			kept.Layout, kept.Prefix = i.Config.Layout, cmp.Or(i.Config.Prefix, c.Prefix)
			if err := kept.compare(name, c); err != nil {
				return writeNothing, err
			}
		case i.State == Destroying:
			return writeNothing, beingDestroyedError(name)
		default:
			// If the value that was read is lost, so is an unused sequencer.
			// Its range and floor must not be: another generator may have the
			// rest.
			if want, have := c.Nodes.String(), i.Config.Nodes.String(); c.Nodes != nil && want != have {
				return writeNothing, mismatchError(name, "nodes", have, want)
			}
			if want, have := c.Layout.String(), i.Config.Layout.String(); want != have {
				return writeNothing, mismatchError(name, "layout", have, want) // by the key even, at least
			}
			if i.Floor.Before(fresh.laterFloor()) {
				return writeNothing, mismatchError(name, "floor", timeText(i.Floor), timeText(fresh.laterFloor()))
			}
			if c.Nodes == nil && opt.Floor.IsZero() {
				return writeNothing, i.Config.compare(name, c)
			}
			return writeSame, i.Config.compare(name, c)
		}
		fresh.Incarnation, fresh.LongestWindow = i.Incarnation+1, i.LongestWindow
		fresh.Config.Nodes = cmp.Or(c.Nodes, i.Config.Nodes)
		fresh.Config.Prefix = cmp.Or(c.Prefix, i.Config.Prefix)
		if kept := fresh.Config.Nodes; kept.Check(c.Layout) != nil {
			return writeNothing, kindErrorf(ErrMismatch, "sequencer %[1]s keeps the node IDs %[2]v, and layout %[3]s only has "+
				"0..%[4]d: give it others (firn sequencer create %[1]s --nodes LO..HI)", name, kept, c.Layout, c.Layout.MaxNode())
		}
		*i = fresh
		return writeChange, nil
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
