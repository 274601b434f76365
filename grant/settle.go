package grant

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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

// maxUnknownWrites is the maximum number of writes with an unknown result that
// settle makes.
const maxUnknownWrites = 5
