package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// An edit changes the record of a sequencer, and reports whether to write it
// even if it stays the same, or why not.
type edit func(r *Info) (write bool, err error)

// changeConfig changes the record of a sequencer, and returns it; r has
// incarnation 0 if there is no record yet. If do returns true, or an earlier
// write had an unknown result, the record is written even if it stays the same,
// because the value that was read may not be durable. If do returns an
// error, nothing is written. If the record does not stay the same, what is its
// last change.
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
			info.LastChange = changeBy(ctx, what)
		}
		info.nonce = newToken()
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

// settle replaces the value of a key by what next makes of it, and repeats that
// until a write was applied. next may be called several times, and returns nil
// to leave the value unchanged; lost reports whether an earlier write had an
// unknown result.
//
// A write with an unknown result is settled by another write, not by a read,
// because a value that was read may disappear in a failover of the store. So
// every write has different bytes, and settle returns only when one was
// applied, or when several in a row had an unknown result.
func settle(ctx context.Context, s Store, key string, next func(old []byte, lost bool) []byte) error {
	var lost error // of the last write with an unknown result
	for unknown := 0; ; {
		old, err := get(ctx, s, key)
		if err != nil {
			return err
		}
		value := next(old, lost != nil)
		if value == nil {
			return nil
		}
		applied, err := s.CAS(ctx, key, old, value)
		switch {
		case err == nil && applied:
			return nil
		case err == nil:
			continue // another process was faster
		case !errors.Is(err, ErrNotSent):
			lost = err
		case lost == nil:
			return err
		}
		if unknown++; unknown == maxUnknownWrites {
			return fmt.Errorf("the result of %d writes is unknown; try again: %w", unknown, lost)
		}
		select {
		case <-time.After(time.Duration(unknown) * 100 * time.Millisecond):
		case <-ctx.Done():
			return lost
		}
	}
}

// maxUnknownWrites is the maximum number of writes with an unknown result that settle
// makes.
const maxUnknownWrites = 5

func newToken() string { return fmt.Sprintf("%016x%016x", random(), random()) }

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
		next = newToken()
		r.nonce = next
		ours = append(ours, next)
		return r.encode()
	})
	if err != nil {
		return "", fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	return next, nil
}
