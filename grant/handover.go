package grant

import (
	"context"
	"time"
)

// HandOverTime returns when another store, or another generator, may begin to
// use node IDs of a sequencer that its members give up, those for which gives
// returns true: when all clocks that are within Skew have passed
// everything that was granted of them. This store alone knows what that is, and
// members may have used times ahead of the clock. For node IDs without a
// record, and whatever a fenced store has lost, that is the floor. It is the
// zero time if no such node ID was ever used. Records that cannot be read are
// left out.
func HandOverTime(ctx context.Context, s Store, i Info, gives func(node uint64) bool) (time.Time, error) {
	end := ms(i.Floor)
	records, err := nodeRecords(ctx, s, i.Name)
	for _, n := range records {
		if n.damage == nil && gives(n.node) && n.key == nodeKey(i.Name, n.node, i.Config.Layout.MaxNode()) {
			end = max(end, n.record.windowsEnd()) // a repair leaves windows above the mark
		}
	}
	if err != nil || end == never {
		return time.Time{}, err
	}
	return timeOf(end).Add(Skew), nil
}
