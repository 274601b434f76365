package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firnid/firn/internal/stale"
)

// get reads the value of a key. In place of a damaged value, it returns the
// text of the error, as GetMany and List do. No valid record looks like that.
func get(ctx context.Context, s Store, key string) ([]byte, error) {
	value, err := s.Get(ctx, key)
	if e, ok := errors.AsType[*stale.Error](err); ok && fencedSince(key, value, e.Other) {
		e.Trust()
		value, err = s.Get(ctx, key)
	}
	if errors.Is(err, ErrDamaged) {
		prefix := ErrNotSent.Error() + ": " // the beginning of the texts of GetMany and List
		return []byte(prefix + strings.TrimPrefix(err.Error(), prefix)), nil
	}
	return value, err
}

// fencedSince reports whether a configuration shows a fence that was made after
// a time. Clocks differ by up to the skew, which is part of the floor.
func fencedSince(key string, config []byte, after time.Time) bool {
	r, err := decodeInfo(key, config)
	return err == nil && !r.fenceFloor.IsZero() &&
		r.fenceFloor.Add(-r.Config.MaxAhead-max(2*r.LongestWindow, minFence)).After(after)
}

// getMany reads several keys, in one round trip if the store supports it.
func getMany(ctx context.Context, s Store, keys []string) ([][]byte, error) {
	if g, ok := As[MultiGetter](s); ok {
		return g.GetMany(ctx, keys)
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		v, err := get(ctx, s, key)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// A storedNode is the record of a node ID in a store.
type storedNode struct {
	node   uint64
	key    string
	value  []byte
	record nodeRecord
	damage error // why the record cannot be read, or nil
}

// nodeRecords returns the records of all node IDs. It is an error if one of
// them has a newer version.
func nodeRecords(ctx context.Context, s Store, name string) (all []storedNode, err error) {
	listErr := s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		n := storedNode{key: key, value: bytes.Clone(value)}
		if n.node, n.record, n.damage = decodeNodeEntry(name, key, value); n.damage != nil && !errors.Is(n.damage, ErrDamaged) {
			err = n.damage
		}
		all = append(all, n)
		return err == nil
	})
	if listErr != nil {
		err = fmt.Errorf("grant: sequencer %s: %w", name, listErr)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// storeTime asks a store for its time, in Unix milliseconds: the current time
// is at least at, and at most within later.
func storeTime(ctx context.Context, s Store) (at, within int64, err error) {
	clock, ok := As[Clock](s)
	if !ok {
		return 0, 0, errors.ErrUnsupported
	}
	began := time.Now()
	t, resolution, err := clock.Time(ctx)
	if err != nil {
		return 0, 0, err
	}
	return t.UnixMilli(), (time.Since(began) + resolution).Milliseconds() + 2, nil
}

// windowOf returns the default window of a store, or 0 if it has none.
func windowOf(s Store) time.Duration {
	if w, ok := As[interface{ Window() time.Duration }](s); ok {
		return w.Window()
	}
	return 0
}
