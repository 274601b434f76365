package firn

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// A Layout defines how the bits of an ID are divided into fields: the time in
// ticks since an epoch, the sequence within a tick, the node ID, and in some
// formats constant and random bits.
//
// A Layout is a value: it compares with ==, and prints and parses as text (see
// ParseLayout). The zero Layout is not valid; see Default. Methods may be
// called by multiple goroutines concurrently.
type Layout struct {
	preset uint8 // index into presets plus one; 0: defined by its bits
	size   uint8 // bits of an ID: 64, 96, 128 or 160
	n      uint8 // pieces in use

	timeBits, nodeBits, seqBits, randBits uint8
	even                                  uint8 // the key even; see ParseLayout

	pieces [maxPieces]piece // from the top bit down
	consts wide             // the constant bits, in place
	unit   time.Duration    // of a tick
	epoch  int64            // Unix milliseconds
}

// maxPieces exceeds what any known format needs: Lable's has six.
const maxPieces = 16

// A piece is a run of ID bits that belong to one field. A field may consist of
// several pieces; the topmost one holds its highest bits.
type piece struct {
	field   Field
	reverse bool  // the piece's lowest bit comes first in the ID
	width   uint8 // in bits
	pos     uint8 // position of the piece's lowest bit in the ID
	low     uint8 // position of that bit in the field
}

// Parts are the meaningful fields of an ID.
type Parts struct {
	Time time.Time // the beginning of the ID's tick, in UTC
	Node uint64    // the node ID of the generator that made it, 0 to MaxNode
	Seq  uint64    // its number within the tick, 0 to MaxSeq
}

// Default returns Firn's own layout: one zero bit, 41 bits of milliseconds
// since 2026-01-01, 10 bits of node ID and 12 bits of sequence. It lasts until
// 2095 and never sets the sign bit.
func Default() Layout { return MustParseLayout("default") }

// WithEpoch returns the layout with another epoch, truncated to whole
// milliseconds. For an epoch outside the years 1 to 9999 it returns the zero
// Layout, which is not valid.
func (l Layout) WithEpoch(epoch time.Time) Layout {
	if l.IsZero() || !isEpoch(epoch) {
		return Layout{}
	}
	l.epoch = epoch.UnixMilli()
	return l
}

// isEpoch reports whether the text of a layout can express t as its epoch.
func isEpoch(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1 && year <= 9999
}

// IsZero reports whether l is the zero Layout, which is not valid.
func (l Layout) IsZero() bool { return l.size == 0 }

// Bits returns the size of an ID: 64 or 128, and for read-only formats also 96
// or 160.
func (l Layout) Bits() int { return int(l.size) }

// TimeBits returns the width of the time field.
func (l Layout) TimeBits() int { return int(l.timeBits) }

// NodeBits returns the width of the node field.
func (l Layout) NodeBits() int { return int(l.nodeBits) }

// SeqBits returns the width of the sequence field.
func (l Layout) SeqBits() int { return int(l.seqBits) }

// RandBits returns the number of random bits in an ID.
func (l Layout) RandBits() int { return int(l.randBits) }

// HasRuns reports whether batches of the layout can be written as runs, that
// is, as equally spaced IDs. They cannot if IDs have random bits, or if the
// step between two IDs is 2^64 or more.
func (l Layout) HasRuns() bool {
	return l.size == 64 && l.randBits == 0 || l.size == 128 && newComposer(&l, 0).hasRuns()
}

// Unit returns the length of a tick.
func (l Layout) Unit() time.Duration { return l.unit }

// Epoch returns the start of tick 0, in UTC.
func (l Layout) Epoch() time.Time { return time.UnixMilli(l.epoch).UTC() }

// Last returns the start of the last tick that the time field can hold, in UTC.
func (l Layout) Last() time.Time {
	t, _ := l.timeOf(mask(l.timeBits))
	return t
}

// End returns the exclusive end of the layout's time, one Unit after Last. From
// then on generators return ErrTimeOver.
func (l Layout) End() time.Time { return l.Last().Add(l.unit) }

// MaxNode returns the highest node ID.
func (l Layout) MaxNode() uint64 { return mask(l.nodeBits) }

// MaxSeq returns the highest sequence number. A tick holds MaxSeq+1 IDs.
func (l Layout) MaxSeq() uint64 { return mask(l.seqBits) }

// SameIDs reports whether every ID means the same in both layouts: their bits,
// epoch and unit are equal. The key even and the name are not compared.
func (l Layout) SameIDs(m Layout) bool {
	l.preset, l.even = m.preset, m.even
	return l == m
}

// IDsPerSecond returns the sustained rate at which one node can make IDs.
func (l Layout) IDsPerSecond() float64 {
	if l.unit <= 0 {
		return 0
	}
	return math.Ldexp(1, int(l.seqBits)) * float64(time.Second) / float64(l.unit)
}

// DefaultMaxAhead returns the layout's default for Options.MaxAhead: 15 s for
// hazelcast, as in Hazelcast itself, and 1 s for all others.
func (l Layout) DefaultMaxAhead() time.Duration {
	return cmp.Or(l.presetOf().maxAhead, time.Second)
}

// ReadOnly reports whether IDs of the layout can be read but not made. That
// holds for formats with IDs of 96 and 160 bits.
func (l Layout) ReadOnly() bool { return l.size != 64 && l.size != 128 }

// Ordered reports whether IDs sort by time and those of one generator strictly
// increase. In such a layout the time is not reversed and lies above everything
// else that varies, and no random bits lie above the sequence.
func (l Layout) Ordered() bool {
	if !l.timeOnTop() {
		return false
	}
	left := l.seqBits
	for _, p := range l.pieces[:l.n] {
		switch p.field {
		case FieldSeq:
			left -= p.width
		case FieldRand:
			if p.width > 0 && left > 0 {
				return false
			}
		}
	}
	return true
}

// timeOnTop reports whether IDs sort by time, at the resolution of ticks.
func (l *Layout) timeOnTop() bool {
	left := l.timeBits
	for _, p := range l.pieces[:l.n] {
		switch {
		case p.width == 0 || p.field == FieldConst:
		case p.field != FieldTime:
			return left == 0
		case p.reverse && p.width > 1:
			return false
		default:
			left -= p.width
		}
	}
	return true
}

// checkValid returns an error for a layout that ParseLayout did not return.
func (l *Layout) checkValid() error {
	if l.size == 0 {
		return errors.New("firn: the zero Layout is not valid; use Default or ParseLayout")
	}
	return nil
}

// checkBits checks that IDs have the size that the called method handles. twin
// is the method for the other size.
func (l *Layout) checkBits(size uint8, twin string) error {
	if err := l.checkValid(); err != nil {
		return err
	}
	if l.size == size {
		return nil
	}
	if l.ReadOnly() {
		return l.readOnlyError()
	}
	return fmt.Errorf("firn: layout %s has IDs of %d bits: use %s", *l, l.size, twin)
}

func (l *Layout) readOnlyError() error {
	return fmt.Errorf("firn: IDs of layout %s have %d bits: they can be read but not made", *l, l.size)
}

// CheckGenerator returns nil if a generator can make IDs of the layout. It
// cannot if the layout is zero or ReadOnly, or if the tick and the sequence
// exceed the 63 bits in which a generator counts.
func (l Layout) CheckGenerator() error {
	if err := l.checkValid(); err != nil {
		return err
	}
	if l.ReadOnly() {
		return l.readOnlyError()
	}
	_, err := l.endTick()
	return err
}

// CheckTime returns nil if IDs of the layout can be made at a time. Otherwise
// the error matches ErrTimeOver, or it is a *ClockError that matches
// ErrBeforeEpoch, or the layout is zero.
func (l Layout) CheckTime(now time.Time) error {
	if err := l.checkValid(); err != nil {
		return err
	}
	switch {
	case !now.Before(l.End()):
		return l.timeOverError()
	case now.Before(l.Epoch()):
		return l.beforeEpochError(now)
	}
	return nil
}

func (l *Layout) beforeEpochError(now time.Time) error {
	epoch := l.Epoch()
	return &ClockError{Now: now, Last: epoch, Wait: epoch.Sub(now), BeforeEpoch: true}
}

func (l *Layout) timeOverError() error {
	return fmt.Errorf("%w (its time ended at %s)", ErrTimeOver, formatTime(l.End()))
}

func (l *Layout) rangeError(name string, v, most uint64) error {
	return &RangeError{name, strconv.FormatUint(v, 10), "0", strconv.FormatUint(most, 10)}
}
