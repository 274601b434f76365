package grant

import (
	"context"
	"errors"
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
