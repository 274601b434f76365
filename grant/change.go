package grant

import (
	"bytes"
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

// An edit changes the record of a sequencer, and reports whether to write it
// even if it stays the same, or why not.
type edit func(r *Info) (write bool, err error)

// changeConfig changes the record of a sequencer, and returns it; r has
// incarnation 0 if there is no record yet. If do returns true, or an earlier
// write had an unknown result, the record is written even if it stays the same,
// because the value that was read may not be durable. If do returns an error,
// nothing is written. A record that has changed names what as its last change.
func changeConfig(ctx context.Context, s Store, name, what string, do edit) (info Info, err error) {
	var refused error
	err = settle(ctx, s, configKey(name), func(old []byte, lost bool) []byte {
		info = Info{}
		if old != nil {
			if info, refused = decodeInfo(configKey(name), old); refused != nil {
				return nil
			}
		}
		var write bool
		var before []byte
		if old != nil {
			before = info.encode()
		}
		if write, refused = do(&info); refused != nil || !write && !lost {
			return nil
		}
		info.Floor, info.LongestWindow = info.laterFloor(), max(info.LongestWindow, info.Config.Window)
		if !bytes.Equal(before, info.encode()) {
			info.LastChange = newChange(ctx, what)
		}
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
	return changeConfig(ctx, s, name, what, func(r *Info) (write bool, err error) {
		if r.Incarnation == 0 {
			return false, fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		return do(r)
	})
}

// changeUsable is changeExisting for a sequencer that this store still has.
func changeUsable(ctx context.Context, s Store, name, what string, do edit) (Info, error) {
	return changeExisting(ctx, s, name, what, func(r *Info) (write bool, err error) {
		switch {
		case r.MovedTo != "":
			return false, movedError(name, r.MovedTo)
		case r.State >= Destroying:
			return false, fmt.Errorf("%w: %s is %v; create it again to use it", ErrDestroyed, name, r.State)
		}
		return do(r)
	})
}

// changeIfNonce changes a configuration, and its nonce, if it still has the
// given one. It returns the nonce of what it wrote, or "" if the configuration
// has another.
func changeIfNonce(ctx context.Context, s Store, name, nonce string, change func(*Info)) (next string, err error) {
	ours := []string{nonce}
	err = settle(ctx, s, configKey(name), func(old []byte, _ bool) []byte {
		r, err := decodeInfo(configKey(name), old)
		if err != nil || !slices.Contains(ours, r.nonce) {
			next = ""
			return nil
		}
		change(&r)
		next = newToken(random)
		r.nonce = next
		ours = append(ours, next)
		return r.encode()
	})
	if err != nil {
		return "", fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	return next, nil
}
