package grant

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"
)

// RepairOptions configure Repair. Nil and the zero RepairOptions mean the
// defaults.
type RepairOptions struct {
	// Now is the clock; nil means the system clock.
	Now func() time.Time

	// DryRun reports what would be done, and writes nothing.
	DryRun bool
}

// A RepairReport is what Repair did, or would do.
type RepairReport struct {
	Nodes   []RepairedNode // that were given back
	Left    []NodeInfo     // that are far ahead, and that only time frees
	Damaged []error        // of records that cannot be read, and were left unchanged
}

// A RepairedNode is a node ID that Repair gave back. No window of it ever
// covered the span [From, To), in which it can be used again. Wrong clocks have
// claimed [To, Kept), which is never used again. NodeInfo is what the record
// had before.
type RepairedNode struct {
	NodeInfo
	From, To, Kept time.Time
}

// Repair gives back node IDs that were claimed and abandoned by processes whose
// clock was far ahead. Such a claim blocks its node ID until the time that the
// wrong clock showed. Its record remembers a span before it that no window ever
// covered. Repair moves the mark back to the beginning of that span, and marks
// the span that the wrong clock may have used, so that no window reaches into
// it. Repair depends on the records alone: even if the owner of the node ID is
// still alive, it cannot use what is given back.
//
// The clock must be right. If Repair is interrupted, run it again.
func Repair(ctx context.Context, s Store, name string, o *RepairOptions) (RepairReport, error) {
	opt := *cmp.Or(o, new(RepairOptions))
	var report RepairReport
	info, err := Lookup(ctx, s, name)
	if err != nil {
		return report, err
	}
	// A mark this far ahead does not come from a clock that is right.
	now := ms(clockOr(opt.Now)())
	limit := max(now+(info.Config.MaxAhead+2*info.LongestWindow).Milliseconds(), ms(info.Floor))
	records, err := nodeRecords(ctx, s, name)
	if err != nil {
		return report, err
	}
	for _, stored := range records {
		r := stored.record
		n := r.info(stored.node)
		switch {
		case stored.key != nodeKey(name, n.Node, info.Config.Layout.MaxNode()):
			// It belongs to a layout of another width, before a purge.
		case stored.damage != nil:
			report.Damaged = append(report.Damaged, stored.damage)
		case r.Until <= limit:
		case !r.repairable(now):
			report.Left = append(report.Left, n)
		default:
			r.repair()
			report.Nodes = append(report.Nodes,
				RepairedNode{n, timeOf(r.Until), timeOf(r.Spoiled.from), timeOf(r.Spoiled.until)})
		}
	}
	if opt.DryRun {
		return report, nil
	}
	for _, n := range report.Nodes {
		if err := repairNode(ctx, s, nodeKey(name, n.Node, info.Config.Layout.MaxNode()), now, limit); err != nil {
			return report, fmt.Errorf("grant: sequencer %s: half repaired, run it again: node ID %d: %w",
				name, n.Node, err)
		}
	}
	if len(report.Nodes) > 0 {
		_, err = changeExisting(ctx, s, name, "repair", func(*Info) (writing, error) {
			return writeChange, nil // of the records: the configuration only names it
		})
	}
	return report, err
}

// repairable reports whether a record remembers a span that can be given back
// and has not passed yet.
func (r nodeRecord) repairable(now int64) bool { return r.Gap.length() > 0 && r.Gap.until > now }

// repair moves the mark back to the beginning of the gap. The span after the
// gap is spoiled.
func (r *nodeRecord) repair() {
	r.Spoiled = span{r.Gap.until, r.windowsEnd()}
	r.Until, r.Gap = r.Gap.from, span{}
}

// repairNode repairs a record, unless another process was faster.
func repairNode(ctx context.Context, s Store, key string, now, limit int64) error {
	var ours []byte
	return settle(ctx, s, key, func(old []byte, lost bool) []byte {
		r, err := decodeNode(key, old)
		switch {
		case lost && bytes.Equal(old, ours): // it may not be durable
		case err != nil || r.Until <= limit || !r.repairable(now):
			return nil
		default:
			r.repair()
		}
		r.takeAway(now)
		ours = r.encode()
		return ours
	})
}
