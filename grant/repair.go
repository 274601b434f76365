package grant

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RepairOptions are what Repair can be told. The zero RepairOptions and nil
// mean the defaults.
type RepairOptions struct {
	// DryRun reports what Repair would do, and writes nothing.
	DryRun bool

	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// A RepairedNode is a node ID whose mark lies far ahead of the clock, and
// what a repair does about it.
type RepairedNode struct {
	NodeInfo // as it was

	// From and To are the span of time that the repair gives back: no window of
	// the number ever covered it. From To on, up to Kept, wrong clocks have
	// claimed the number; that span is never used again. All three are zero where
	// the record has no such span. Then only time frees the number: a record of
	// version 1 does not say which times below its mark were never used.
	From, To, Kept time.Time
}

// A RepairReport says what Repair did, or would do.
type RepairReport struct {
	Sequencer string
	Nodes     []RepairedNode // those given back
	Left      []RepairedNode // those that are far ahead and cannot be given back
	Damaged   []error        // records that cannot be read and were left as they are
}

// Repair gives back the node IDs that processes with a clock far ahead have
// claimed and left behind. Such a claim blocks its number until the time that
// the wrong clock showed. Its record remembers which span before it was never
// covered by a window; Repair returns the mark to the beginning of that span,
// and keeps the span that the wrong clock may have used, which no window
// reaches into from then on. It rests on the records alone: the owner of the
// number cannot use what is given back, even if it lives.
//
// The clock must be right. If Repair is stopped half way, run it again.
func Repair(ctx context.Context, s Store, name string, o *RepairOptions) (RepairReport, error) {
	var opt RepairOptions
	if o != nil {
		opt = *o
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	report := RepairReport{Sequencer: name}
	if err := CheckName(name); err != nil {
		return report, err
	}
	config, _, err := getConfig(ctx, s, name)
	if err != nil {
		return report, err
	}
	// A mark this far ahead is that of no clock that is right.
	now := ms(opt.Now())
	limit := now + config.MaxAhead + 2*config.LongestWindow
	keys := make(map[uint64]string)
	err = s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		node, err := nodeOf(name, key)
		if err != nil || key != nodeKey(name, node, config.Layout.MaxNode()) {
			return true // of a layout of another width, before a purge
		}
		r, err := decodeNode(key, value)
		switch {
		case err != nil:
			report.Damaged = append(report.Damaged, err)
		case r.Until <= max(limit, config.Floor):
		case !r.repairable(now):
			report.Left = append(report.Left, RepairedNode{NodeInfo: r.info(node)})
		default:
			was := r.info(node)
			r.repair()
			report.Nodes = append(report.Nodes, RepairedNode{was, timeOf(r.Until), timeOf(r.Spoiled[0]), timeOf(r.Spoiled[1])})
			keys[node] = key
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
		if err := repairNode(ctx, s, keys[n.Node], now, max(limit, config.Floor)); err != nil {
			return report, fmt.Errorf("grant: sequencer %s: half repaired, run it again: node ID %d: %w", name, n.Node, err)
		}
	}
	return report, nil
}

// repairable reports whether a record remembers a span that can be given back:
// one of which something is left.
func (r nodeRecord) repairable(now int64) bool { return r.Gap.length() > 0 && r.Gap[1] > now }

// repair returns the mark to where the gap begins. What lies behind the gap is
// spoiled.
func (r *nodeRecord) repair() {
	end := r.Until
	if r.Spoiled.length() > 0 {
		end = r.Spoiled[1]
	}
	r.Spoiled = span{r.Gap[1], end}
	r.Until, r.Gap = r.Gap[0], span{}
}

// repairNode repairs a record, unless another was faster.
func repairNode(ctx context.Context, s Store, key string, now, limit int64) error {
	return settle(ctx, s, key, func(old []byte) []byte {
		r, err := decodeNode(key, old)
		if err != nil || r.Until <= limit || !r.repairable(now) {
			return nil
		}
		r.repair()
		r.Nonce, r.Owner, r.State, r.Wall = newToken(), "", flagFree, now
		return r.encode()
	})
}
