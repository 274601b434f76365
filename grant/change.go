package grant

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A Change is an operation on a sequencer, for people: who did it, and when.
type Change struct {
	What string    // such as "create", "detach" or "fence": a command of firn
	By   string    // see WithOperator
	At   time.Time // when it began, by the clock of its machine
}

type operatorKey struct{}

// WithOperator returns a context for operations on sequencers by an operator,
// whose name is written into the record as Change.By, cut to 64 bytes. Without
// it, that is the name of the host.
func WithOperator(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operatorKey{}, name)
}

// newChange returns a Change that begins now.
func newChange(ctx context.Context, what string) Change {
	by, _ := ctx.Value(operatorKey{}).(string)
	if by == "" {
		by, _ = os.Hostname()
	}
	at := min(max(ms(time.Now()), -maxTime), maxTime)
	return Change{what, truncate(strings.ToValidUTF8(by, "?"), maxBy), timeOf(at)}
}

// An edit changes the record of a sequencer, and returns what to write, or an
// error if nothing is to be written.
type edit func(i *Info) (writing, error)

// A writing is what an operation writes into the record of a sequencer.
type writing int

const (
	writeNothing writing = iota // but writeSame if an earlier write had an unknown result
	writeSame                   // the same with a new nonce: the value that was read may not be durable
	writeChange                 // a change, which the record then names as its last one
)

// setState is an edit to a state.
func (i *Info) setState(to State) writing {
	if i.State == to {
		return writeSame
	}
	i.State = to
	return writeChange
}

// changeConfig changes the record of a sequencer, and returns it. For do, it
// has incarnation 0 if there is no record yet.
func changeConfig(ctx context.Context, s Store, name, what string, do edit) (info Info, err error) {
	var refused error
	err = settle(ctx, s, configKey(name), func(old []byte, lost bool) []byte {
		info = Info{}
		if old != nil {
			if info, refused = decodeInfo(configKey(name), old); refused != nil {
				return nil
			}
		}
		var w writing
		if w, refused = do(&info); refused != nil || w == writeNothing && !lost {
			return nil
		}
		if w == writeChange {
			info.LastChange = newChange(ctx, what)
		}
		info.Floor, info.LongestWindow = info.laterFloor(), max(info.LongestWindow, info.Config.Window)
		info.nonce = newToken(random)
		return info.encode()
	})
	switch {
	case refused != nil:
		return Info{}, refused
	case err != nil:
		return Info{}, fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	return info, nil
}

// changeExisting is changeConfig for a sequencer that must exist.
func changeExisting(ctx context.Context, s Store, name, what string, do edit) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	return changeConfig(ctx, s, name, what, func(i *Info) (writing, error) {
		if i.Incarnation == 0 {
			return writeNothing, fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		return do(i)
	})
}

// changeUnmoved is changeExisting for a sequencer that this store still has.
func changeUnmoved(ctx context.Context, s Store, name, what string, do edit) (Info, error) {
	return changeExisting(ctx, s, name, what, func(i *Info) (writing, error) {
		if i.MovedTo != "" {
			return writeNothing, movedError(name, i.MovedTo)
		}
		return do(i)
	})
}

// changeUsable is changeUnmoved for a sequencer that is not destroyed.
func changeUsable(ctx context.Context, s Store, name, what string, do edit) (Info, error) {
	return changeUnmoved(ctx, s, name, what, func(i *Info) (writing, error) {
		if i.State >= Destroying {
			return writeNothing, fmt.Errorf("%w: %s is %v; create it again to use it", ErrDestroyed, name, i.State)
		}
		return do(i)
	})
}

// changeIfNonce changes a configuration, and its nonce, if it still has the
// given one. It returns the nonce of what it wrote, or "" if the configuration
// has another.
func changeIfNonce(ctx context.Context, s Store, name, nonce string, change func(*Info)) (next string, err error) {
	ours := []string{nonce}
	err = settle(ctx, s, configKey(name), func(old []byte, _ bool) []byte {
		i, err := decodeInfo(configKey(name), old)
		if err != nil || !slices.Contains(ours, i.nonce) {
			next = ""
			return nil
		}
		change(&i)
		next = newToken(random)
		i.nonce = next
		ours = append(ours, next)
		return i.encode()
	})
	if err != nil {
		return "", fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	return next, nil
}
