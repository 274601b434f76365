package grant

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// minFence is the minimum time from a fence to the beginning of the first new
// window, by every clock that is within the skew. A member whose window the
// fence does not know learns of the floor within configEvery and a request's
// timeout, and stops before it.
const minFence = 30 * time.Second

// FenceOptions configure Fence. Nil and the zero FenceOptions mean the
// defaults.
type FenceOptions struct {
	// Now is the clock; nil means the system clock.
	Now func() time.Time

	// DryRun reports what would be done, and writes nothing.
	DryRun bool

	// Skew is how far the clocks of members may differ. Zero or less means 10
	// seconds.
	Skew time.Duration

	// LongestWindow is the longest window that the sequencer had before its
	// store went back. If the current configuration records a longer one, that
	// one applies. LongestWindow must be given if the configuration is newer
	// than the restore, because it then contains nothing about the lost one.
	LongestWindow time.Duration

	// Restored is when the store went back, if known. A configuration that was
	// created before it, minus Skew, is the lost one. The zero time means
	// unknown: then a configuration created within the last day is assumed to
	// be newer than the restore.
	Restored time.Time

	// AnyClock proceeds even if the clock is far from the times at which
	// records were written.
	AnyClock bool
}

// A FenceReport is what Fence did, or would do.
type FenceReport struct {
	Floor   time.Time  // no grant begins before it
	Records int        // that were rewritten
	Nodes   []NodeInfo // that were held when the fence began
	Damaged []error    // of records that cannot be read, and were left unchanged

	// LongestWindow is the window from which the floor was computed. Unsure says
	// why it may be too short, and is empty if it is not:
	// FenceOptions.LongestWindow was not given, and there is no record, or the
	// configuration may be newer than the restore. That is possible if it was
	// created after every record was written, or after FenceOptions.Restored
	// or, if that is unknown, within the last day.
	LongestWindow time.Duration
	Unsure        string
}

// Fence makes a sequencer safe after its store was restored from a backup or
// went back in any other way. It rewrites every record, so that no member can
// continue with what it held before, and sets a floor above all windows that
// may have been granted since the backup. Members acquire node IDs again when
// the floor is near. That takes the skew plus twice the window, or plus 30 s if
// that is longer.
//
// Run it before IDs are made again, on a machine whose clock is right. The
// error matches ErrClockBehind if the clock is more than a day behind the time
// at which the latest record was written, and ErrClockAhead if it is more than
// 366 days ahead of that. If the report is Unsure, Fence writes nothing, and
// the error matches ErrUnsure. If Fence is interrupted, run it again.
func Fence(ctx context.Context, s Store, name string, o *FenceOptions) (FenceReport, error) {
	opt := *cmp.Or(o, new(FenceOptions))
	if opt.Skew <= 0 {
		opt.Skew = MaxSkew
	}
	var report FenceReport
	if opt.LongestWindow < 0 || opt.LongestWindow > maxWindow {
		return report, fmt.Errorf("grant: the longest window is %v: it must be from 0 to %v",
			opt.LongestWindow, maxWindow)
	}
	given := (opt.LongestWindow + time.Millisecond - 1).Milliseconds()
	info, err := Lookup(ctx, s, name)
	if err != nil {
		return report, err
	}
	now := clockOr(opt.Now)()
	latest := never // of the latest record
	longest := max(info.LongestWindow.Milliseconds(), given)
	records, err := nodeRecords(ctx, s, name)
	if err != nil {
		return report, err
	}
	for _, n := range records {
		if n.damage != nil {
			report.Damaged = append(report.Damaged, n.damage)
			continue
		}
		r := n.record
		report.Records++
		latest = max(latest, r.Wall)
		if node := r.info(n.node); node.HeldAt(now) {
			report.Nodes = append(report.Nodes, node)
		}
		if r.held() { // as its owner wrote it: a window, and how far ahead it began
			longest = max(longest, min(r.Until-r.Wall, maxWindow.Milliseconds()))
		}
	}
	report.LongestWindow = time.Duration(longest) * time.Millisecond
	restored := opt.Restored
	if restored.IsZero() {
		restored = now.Add(opt.Skew - 24*time.Hour)
	}
	switch {
	case opt.LongestWindow > 0:
	case report.Records == 0:
		report.Unsure = "no record shows how long its windows were"
	case ms(info.Created) >= latest, ms(info.Created) > ms(restored.Add(-opt.Skew)):
		report.Unsure = fmt.Sprintf("it was created at %s, so its configuration may be younger than the restore",
			timeText(info.Created))
	}
	ahead := max(2*report.LongestWindow, minFence) + opt.Skew
	floor := max(ms(info.fenceFloor), ms(now.Add(info.Config.MaxAhead+ahead)))
	report.Floor = timeOf(max(floor, ms(info.createFloor)))
	if !inRange(floor) {
		return report, fmt.Errorf("grant: the clock reads %s, which is out of range for a fence: set the clock",
			timeText(now))
	}
	if latest != never && !opt.AnyClock {
		const text = "the clock reads %s, which is %v %s the latest record of sequencer %s was written: " +
			"set the clock, or allow it explicitly"
		switch by := now.Sub(timeOf(latest)); {
		case by < -24*time.Hour:
			return report, kindErrorf(ErrClockBehind, text, timeText(now), -by, "before", name)
		case by > maxWindow:
			return report, kindErrorf(ErrClockAhead, text, timeText(now), by, "after", name)
		}
	}
	switch {
	case opt.DryRun:
		return report, nil
	case report.Unsure != "":
		return report, kindErrorf(ErrUnsure, "sequencer %s was not fenced: %s; members may have had windows longer "+
			"than %v: state the longest that it ever had", name, report.Unsure, report.LongestWindow)
	}

	report.Records, err = fenceAll(ctx, s, name, floor, given, ms(now))
	return report, err
}

// fenceAll raises the floor, rewrites all records, and returns their number.
func fenceAll(ctx context.Context, s Store, name string, floor, longest, now int64) (n int, err error) {
	// The floor comes first, so that a node ID without a record, or one that is
	// acquired while records are rewritten, begins above it.
	if _, err := changeConfig(ctx, s, name, "fence", func(i *Info) (writing, error) {
		i.fenceFloor = timeOf(max(ms(i.fenceFloor), floor))
		i.Incarnation++
		i.LongestWindow = max(i.LongestWindow, time.Duration(longest)*time.Millisecond)
		return writeChange, nil
	}); err != nil {
		return 0, err
	}
	var keys []string
	err = s.List(ctx, nodesPrefix(name), func(key string, _ []byte) bool {
		keys = append(keys, key)
		return true
	})
	if err != nil {
		return 0, fmt.Errorf("grant: sequencer %s: only some records are fenced; run the fence again: %w", name, err)
	}
	for _, key := range keys {
		done, err := fenceNode(ctx, s, key, floor, now)
		if err != nil {
			return n, fmt.Errorf("grant: sequencer %s: only some records are fenced; run the fence again: %s: %w",
				name, key, err)
		}
		if done {
			n++
		}
	}
	return n, nil
}

// fenceNode rewrites a record, so that every write prepared before is refused,
// and reports whether it did. A damaged record is left unchanged: no member can
// acquire or extend it.
func fenceNode(ctx context.Context, s Store, key string, floor, now int64) (done bool, err error) {
	err = settle(ctx, s, key, func(old []byte, _ bool) []byte {
		r, err := decodeNode(key, old)
		if done = err == nil; !done {
			return nil
		}
		r.takeAway(now)
		r.Until = max(r.Until, floor)
		// Windows that the backup does not contain may lie anywhere below the
		// floor.
		if r.Spoiled.length() > 0 && r.Spoiled.from < r.Until {
			r.Until, r.Spoiled = max(r.Until, r.Spoiled.until), span{}
		}
		r.Gap.from = max(r.Gap.from, floor) // a gap that is then empty is not written
		return r.encode()
	})
	return done, err
}

// fencedSince reports whether a configuration shows a fence that was made after
// a time. Clocks differ by up to the skew, which is part of the floor.
func fencedSince(key string, config []byte, after time.Time) bool {
	i, err := decodeInfo(key, config)
	return err == nil && !i.fenceFloor.IsZero() &&
		i.fenceFloor.Add(-i.Config.MaxAhead-max(2*i.LongestWindow, minFence)).After(after)
}
