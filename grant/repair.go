package grant

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// RepairOptions configure Repair. Nil and the zero RepairOptions mean the
// defaults.
type RepairOptions struct {
	// DryRun makes Repair report what it would do without writing anything.
	DryRun bool

	// Now is the clock; nil means the system clock.
	Now func() time.Time
}

// A RepairedNode is a node ID whose mark lies far ahead of the clock, and the
// result of its repair.
type RepairedNode struct {
	NodeInfo // before the repair

	// From and To are the span of time that the repair gives back: no window of
	// the node ID ever covered it. From To up to Kept, wrong clocks have
	// claimed the node ID; that span is never used again. All three are zero if
	// the record contains no such span. Then only time frees the node ID.
	From, To, Kept time.Time
}

// A RepairReport reports what Repair did, or would do.
type RepairReport struct {
	Nodes   []RepairedNode // node IDs that were given back
	Left    []RepairedNode // node IDs that are far ahead and cannot be given back
	Damaged []error        // records that cannot be read and were left unchanged
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
	config, err := Lookup(ctx, s, name)
	if err != nil {
		return report, err
	}
	// A mark this far ahead does not come from a clock that is right.
	now := ms(clockOr(opt.Now)())
	limit := max(now+(config.Config.MaxAhead+2*config.LongestWindow).Milliseconds(), ms(config.Floor))
	err = s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		node, err := nodeOf(name, key)
		if err != nil || key != nodeKey(name, node, config.Config.Layout.MaxNode()) {
			return true // belongs to a layout of another width, before a purge
		}
		r, err := decodeNode(key, value)
		switch {
		case err != nil:
			report.Damaged = append(report.Damaged, err)
		case r.Until <= limit:
		case !r.repairable(now):
			report.Left = append(report.Left, RepairedNode{NodeInfo: r.info(node)})
		default:
			was := r.info(node)
			r.repair()
			report.Nodes = append(report.Nodes, RepairedNode{was, timeOf(r.Until), timeOf(r.Spoiled[0]), timeOf(r.Spoiled[1])})
		}
		return true
	})
	if err != nil {
		return report, fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	for _, err := range report.Damaged {
		if errors.Is(err, ErrNewerVersion) {
			return report, err
		}
	}
	if opt.DryRun {
		return report, nil
	}
	for _, n := range report.Nodes {
		if err := repairNode(ctx, s, nodeKey(name, n.Node, config.Config.Layout.MaxNode()), now, limit); err != nil {
			return report, fmt.Errorf("grant: sequencer %s: half repaired, run it again: node ID %d: %w", name, n.Node, err)
		}
	}
	if len(report.Nodes) > 0 {
		_, err = changeExisting(ctx, s, name, "repair", func(r *Info) (bool, error) {
			r.LastChange = Change{What: "repair"} // the configuration stays the same otherwise
			return true, nil
		})
	}
	return report, err
}

// repairable reports whether a record remembers a span that can be given back
// and has not passed yet.
func (r nodeRecord) repairable(now int64) bool { return r.Gap.length() > 0 && r.Gap[1] > now }

// repair moves the mark back to the beginning of the gap. The span after the
// gap is spoiled.
func (r *nodeRecord) repair() {
	end := r.Until
	if r.Spoiled.length() > 0 {
		end = r.Spoiled[1]
	}
	r.Spoiled = span{r.Gap[1], end}
	r.Until, r.Gap = r.Gap[0], span{}
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
