package grant

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/typed"
)

// A Config is the configuration that all members of a sequencer share. After
// the creation, only Window and Nodes can change: see SetWindow and SetNodes.
type Config struct {
	// Layout is the layout of the IDs, including its epoch and its number of
	// nodes.
	Layout firn.Layout

	// MaxAhead is how far IDs may run ahead of the clock, in whole
	// milliseconds, up to 91 days and 12 hours. Zero means never ahead;
	// DefaultConfig uses the layout's.
	MaxAhead time.Duration

	// Window is the length of a grant, in whole milliseconds: how long a member
	// can work without the store, and how long the node ID of a crashed member
	// is blocked. It is at least twice MaxAhead, four ticks of the layout and
	// 100 ms, and at most 366 days.
	Window time.Duration

	// Nodes are the node IDs that members of this store may take, such as one
	// of two ranges for two stores whose IDs meet in one database; nil means
	// all of the layout. SetNodes changes them; they are not compared with
	// those that a member was opened with.
	Nodes *NodeRange

	// Prefix is the prefix of the IDs as typed text, see package typed; empty
	// means none.
	Prefix string
}

// defaultWindow is the window of a store that has no default of its own.
const defaultWindow = 60 * time.Second

// DefaultConfig returns the configuration for a layout with defaults for
// everything else: the layout's MaxAhead if maxAhead is nil, and the store's
// window, or a longer one if MaxAhead or the layout requires it. The caller may
// change it; Check reports what is invalid. The store may be nil.
func DefaultConfig(s Store, layout firn.Layout, maxAhead *time.Duration) Config {
	c := Config{Layout: layout, MaxAhead: *cmp.Or(maxAhead, new(layout.DefaultMaxAhead()))}
	var pace Pace
	if p, ok := As[Paced](s); ok {
		pace = p.Pace()
	}
	c.Window = max(cmp.Or(pace.Window, defaultWindow), c.minWindow())
	return c
}

// minWindow returns the shortest valid Window for MaxAhead and the layout:
// twice MaxAhead, four ticks, and no less than 100 ms.
func (c Config) minWindow() time.Duration {
	least := max(2*c.MaxAhead, 4*c.Layout.Unit(), 100*time.Millisecond)
	if r := least % time.Millisecond; r != 0 {
		least += time.Millisecond - r
	}
	return least
}

// maxWindow keeps sums of milliseconds far from overflowing int64.
const maxWindow = 366 * 24 * time.Hour

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	if err := c.checkRecord(); err != nil {
		return err
	}
	if err := c.Layout.CheckGenerator(); err != nil {
		return fmt.Errorf("grant: %s", strings.TrimPrefix(err.Error(), "firn: "))
	}
	return nil
}

// checkRecord is Check for a record, which may have any layout: a sequencer with
// an unusable one can still be destroyed and purged.
func (c Config) checkRecord() error {
	if c.Layout.IsZero() {
		return fmt.Errorf("grant: the configuration has no layout")
	}
	if c.MaxAhead < 0 || c.MaxAhead > maxWindow/4 || c.MaxAhead%time.Millisecond != 0 {
		return fmt.Errorf("grant: max-ahead is %v: it must be 0 or more, in whole milliseconds, and no more than %v",
			c.MaxAhead, maxWindow/4)
	}
	if c.Window%time.Millisecond != 0 || c.Window > maxWindow {
		return fmt.Errorf("grant: the window is %v: it must be in whole milliseconds, and no more than %v",
			c.Window, maxWindow)
	}
	if least := c.minWindow(); c.Window < least {
		return fmt.Errorf("grant: the window is %v: with max-ahead %v and ticks of %v it must be at least %v "+
			"(twice max-ahead, four ticks, 100ms)",
			c.Window, c.MaxAhead, c.Layout.Unit(), least)
	}
	if c.Prefix != "" {
		if err := typed.CheckPrefix(c.Prefix); err != nil {
			return fmt.Errorf("grant: %s", strings.TrimPrefix(err.Error(), "typed: "))
		}
	}
	return c.Nodes.Check(c.Layout)
}

// checkTime returns an error if no ID of the layout can be made at a time.
func (c Config) checkTime(name string, now time.Time) error {
	if err := c.Layout.CheckTime(now); err != nil {
		return kindErrorf(err, "sequencer %s: %s", name, strings.TrimPrefix(err.Error(), "firn: "))
	}
	return nil
}

// noPrefix stands for the absence of a prefix.
const noPrefix = "none"

// compare returns an error if want differs from the configuration of the
// sequencer. Layouts differ if their IDs do: the key even may
// differ. A prefix is compared if want has one.
func (c Config) compare(name string, want Config) error {
	for _, f := range []struct {
		field, have, want string
		compared          bool
	}{
		{"layout", c.Layout.String(), want.Layout.String(), !c.Layout.SameIDs(want.Layout)},
		{"prefix", cmp.Or(c.Prefix, noPrefix), want.Prefix, want.Prefix != ""},
		{"max-ahead", c.MaxAhead.String(), want.MaxAhead.String(), true},
		{"window", c.Window.String(), want.Window.String(), true},
	} {
		if f.compared && f.have != f.want {
			return mismatchError(name, f.field, f.have, f.want)
		}
	}
	return nil
}
