package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn/internal/mutant"
)

// FenceOptions are what Fence can be told. The zero FenceOptions and nil mean
// the defaults.
type FenceOptions struct {
	// DryRun reports what Fence would do, and writes nothing.
	DryRun bool

	// Skew is how far the clocks of members may differ. Zero means 10 seconds.
	Skew time.Duration

	// AnyClock fences even where the clock is far from the marks.
	AnyClock bool

	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// A FenceReport says what Fence did, or would do.
type FenceReport struct {
	Sequencer string
	Floor     time.Time // no grant begins before it
	Nodes     int       // records that were rewritten
	Held      []NodeInfo
	Damaged   []error // records that cannot be read and were left as they are
}

// Fence makes a sequencer safe after its store was restored from a backup, or
// went back in any other way. It rewrites every record, so that no member can
// go on from what it held before, and sets a floor above all windows that may
// have been granted since the backup. Members acquire node numbers again when
// the floor is near, after twice the window and the skew.
//
// It must be run before IDs are made again, with the clock set right: one that
// is more than a day behind the latest mark, or more than a year ahead of it,
// is refused. If it is stopped half way, run it again.
func Fence(ctx context.Context, s Store, name string, o *FenceOptions) (FenceReport, error) {
	var opt FenceOptions
	if o != nil {
		opt = *o
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Skew <= 0 {
		opt.Skew = 10 * time.Second
	}
	report := FenceReport{Sequencer: name}
	if err := CheckName(name); err != nil {
		return report, err
	}
	config, _, err := getConfig(ctx, s, name)
	if err != nil {
		return report, err
	}
	now := opt.Now()
	c := config.config()
	floor := max(config.Floor, ms(now.Add(c.MaxAhead+2*c.Window+opt.Skew)))
	report.Floor = timeOf(floor)
	if !inRange(floor) {
		return report, fmt.Errorf("grant: the clock says %s, which is no time to fence a sequencer at", now)
	}

	// Look before anything is written.
	latest := int64(0)
	err = Nodes(ctx, s, name, func(n NodeInfo, err error) bool {
		if err != nil {
			report.Damaged = append(report.Damaged, err)
			return true
		}
		report.Nodes++
		latest = max(latest, ms(n.Wall))
		if n.Held && !n.Until.Before(now) {
			report.Held = append(report.Held, n)
		}
		return true
	})
	if err != nil {
		return report, err
	}
	for _, err := range report.Damaged {
		if errors.Is(err, ErrNewerVersion) {
			return report, err
		}
	}
	if latest != 0 && !opt.AnyClock {
		switch by := now.Sub(timeOf(latest)); {
		case by < -24*time.Hour:
			return report, fmt.Errorf("grant: the clock says %s, which is %v before the latest record of sequencer %s was written: set the clock, or allow it explicitly", now.UTC().Format(timeFormat), -by, name)
		case by > maxWindow:
			return report, fmt.Errorf("grant: the clock says %s, which is %v after the latest record of sequencer %s was written: set the clock, or allow it explicitly", now.UTC().Format(timeFormat), by, name)
		}
	}
	if opt.DryRun {
		return report, nil
	}

	// The floor first, so that a number without a record, or one that is
	// acquired while records are rewritten, begins above it.
	if _, err := changeConfig(ctx, s, name, func(r *configRecord) (bool, error) {
		r.Floor = max(r.Floor, floor)
		r.Incarnation++
		return true, nil
	}); err != nil {
		return report, err
	}
	if mutant.On(mutant.FloorOnly) {
		return report, nil
	}
	report.Nodes = 0
	var keys []string
	err = s.List(ctx, nodesPrefix(name), func(key string, _ []byte) bool {
		keys = append(keys, key)
		return true
	})
	if err != nil {
		return report, fmt.Errorf("grant: sequencer %s: half fenced, run it again: %w", name, err)
	}
	for _, key := range keys {
		done, err := fenceNode(ctx, s, key, floor, ms(now))
		if err != nil {
			return report, fmt.Errorf("grant: sequencer %s: half fenced, run it again: %s: %w", name, key, err)
		}
		if done {
			report.Nodes++
		}
	}
	return report, nil
}

// fenceNode rewrites a record until its bytes are of this fence, so that every
// write prepared before is refused. A damaged record is left: nobody can
// acquire or extend it.
func fenceNode(ctx context.Context, s Store, key string, floor, now int64) (bool, error) {
	for {
		value, err := s.Get(ctx, key)
		if err != nil {
			return false, err
		}
		r, err := decodeNode(key, value)
		if err != nil {
			return false, nil
		}
		r.Nonce, r.Owner, r.State = newToken(), "", flagFree
		r.Until, r.Wall = max(r.Until, floor), now
		next := r.encode()
		applied, err := s.CAS(ctx, key, value, next)
		if err != nil && !errors.Is(err, ErrNotSent) {
			if value, readErr := s.Get(ctx, key); readErr == nil && bytes.Equal(value, next) {
				applied, err = true, nil
			}
		}
		if err != nil || applied {
			return applied, err
		}
	}
}
