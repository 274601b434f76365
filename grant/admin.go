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

	// Waiting is called with what the operation waits for, whenever a Wait is
	// new or has ended, by the goroutine that called the operation. It may be
	// nil.
	Waiting func([]Wait)
}

// A Wait is something that an operation waits for.
type Wait struct {
	Why   WaitReason
	Node  uint64    // 0 for WaitHandOver, which concerns all node IDs that are given away
	Host  string    // of the process that holds it, for WaitHeld
	Until time.Time // when it ends at the latest, by the operator's clock
}

// A WaitReason is why an operation waits.
type WaitReason string

// The reasons to wait.
const (
	// WaitHeld: a process may use the node ID until then, or gives it back.
	WaitHeld WaitReason = "held"

	// WaitDamaged: the record of the node ID cannot be read, and the process
	// that holds it, if any, may use it until then.
	WaitDamaged WaitReason = "damaged"

	// WaitFenced: a fence or a repair took the node ID away, and the process
	// that held it, if any, may not know that until then.
	WaitFenced WaitReason = "fenced"

	// WaitHandOver: no other store or generator may use the node IDs before
	// then; see HandOverTime.
	WaitHandOver WaitReason = "hand-over"
)

// String returns a text such as "node ID 7, held by ids-1 until
// 2026-11-30T09:00:00.000Z at the latest".
func (w Wait) String() string {
	until := timeText(w.Until)
	switch w.Why {
	case WaitHeld:
		return fmt.Sprintf("node ID %d, held by %s until %s at the latest", w.Node, w.Host, until)
	case WaitDamaged:
		return fmt.Sprintf("node ID %d, whose record is damaged: a process may use it until %s", w.Node, until)
	case WaitFenced:
		return fmt.Sprintf("node ID %d, which was fenced or repaired: a process may use it until %s", w.Node, until)
	case WaitHandOver:
		return fmt.Sprintf("the hand-over at %s, when all clocks have passed the times used under the node IDs that "+
			"are given away", until)
	default:
		return fmt.Sprintf("node ID %d, %s until %s", w.Node, string(w.Why), until)
	}
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
// again to continue. The error of a destroyed sequencer matches ErrDestroyed,
// and that of a moved one ErrMoved: it continues in the other store. See
// HandOverTime for when others may use its node IDs.
func Detach(ctx context.Context, s Store, name string, o *WaitOptions) (Info, error) {
	return closeWindows(ctx, s, name, "detach", Detaching, Detached, o)
}

// Destroy makes all members of a sequencer give their node IDs back, for good.
// IDs that were handed out stay unique: the records are kept, and a sequencer
// created again under the same name continues after them. Destroy returns when
// all windows have been given back or have ended. If it is interrupted, call it
// again to continue. The error of a moved sequencer matches ErrMoved: destroy
// it in the other store. See HandOverTime for when others may use its node IDs.
func Destroy(ctx context.Context, s Store, name string, o *WaitOptions) (Info, error) {
	return closeWindows(ctx, s, name, "destroy", Destroying, Destroyed, o)
}

// Purge allows a destroyed sequencer to be created again with another layout.
// That gives up uniqueness between the old and the new IDs: another layout
// divides the bits differently, so both may contain the same numbers. A
// sequencer that is not destroyed is an error, and one that was moved matches
// ErrMoved.
func Purge(ctx context.Context, s Store, name string) (Info, error) {
	return changeUnmoved(ctx, s, name, "purge", func(i *Info) (writing, error) {
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
