package grant

import (
	"context"
	"time"
)

// SetWindow changes how long the windows of a sequencer are, with one write,
// while its members run. They read it within 20 seconds, and use it from their
// next renewal on. Windows that were granted before keep their end. Its other
// settings never change: IDs of another layout may equal earlier ones, and a
// fence relies on MaxAhead.
func SetWindow(ctx context.Context, s Store, name string, window time.Duration) (Info, error) {
	info, _, err := changeUsable(ctx, s, name, func(r *configRecord) (write bool, err error) {
		c := r.config()
		c.Window = window
		if err := c.Check(); err != nil {
			return false, err
		}
		written := r.Window != window.Milliseconds()
		r.Window = window.Milliseconds() // changeConfig raises LongestWindow in the same write
		return written, nil
	})
	return info, err
}
