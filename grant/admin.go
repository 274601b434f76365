package grant

import (
	"context"
	"fmt"
	"time"
)

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
	return changeUsable(ctx, s, name, "attach", func(i *Info) (writing, error) {
		return i.setState(Attached), nil
	})
}

// Detach makes all members of a sequencer give their node IDs back, and
// prevents them from acquiring new ones until Attach. It returns when all
// windows have been given back or have ended. If it is interrupted, call it
// again to continue. The error of a destroyed sequencer matches ErrDestroyed.
// See HandOverTime for when others may use its node IDs.
func Detach(ctx context.Context, s Store, name string, o *WaitOptions) (Info, error) {
	return closeWindows(ctx, s, name, "detach", Detaching, Detached, o)
}

// Destroy makes all members of a sequencer give their node IDs back, for good.
// IDs that were handed out stay unique: the records are kept, and a sequencer
// created again under the same name continues after them. Destroy returns when
// all windows have been given back or have ended. If it is interrupted, call it
// again to continue. See HandOverTime for when others may use its node IDs.
func Destroy(ctx context.Context, s Store, name string, o *WaitOptions) (Info, error) {
	return closeWindows(ctx, s, name, "destroy", Destroying, Destroyed, o)
}

// Purge allows a destroyed sequencer to be created again with another layout.
// That gives up uniqueness between the old and the new IDs: another layout
// divides the bits differently, so both may contain the same numbers. A
// sequencer that is not destroyed is an error.
func Purge(ctx context.Context, s Store, name string) (Info, error) {
	return changeExisting(ctx, s, name, "purge", func(i *Info) (writing, error) {
		if i.State != Destroyed && i.State != Purged {
			return writeNothing, fmt.Errorf("grant: sequencer %s is %v: destroy it before you purge it", name, i.State)
		}
		return i.setState(Purged), nil
	})
}

// SetWindow changes how long the windows of a sequencer are, see Config.Window,
// with one write, while its members run. They read it within 20 seconds, and
// use it from their next renewal on. Windows that were granted before keep
// their end. Its layout and MaxAhead never change: IDs of another layout may
// equal earlier ones, and a fence relies on MaxAhead.
func SetWindow(ctx context.Context, s Store, name string, window time.Duration) (Info, error) {
	return changeUsable(ctx, s, name, "window", func(i *Info) (writing, error) {
		if i.Config.Window == window {
			return writeNothing, nil
		}
		i.Config.Window = window // changeConfig raises LongestWindow in the same write
		return writeChange, i.Config.Check()
	})
}
