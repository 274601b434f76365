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
