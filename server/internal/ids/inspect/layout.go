package inspect

import (
	"fmt"
	"strconv"
	"time"

	"github.com/firnid/firn"
)

// FirstWith returns from when on the IDs of a 64-bit layout have a bit set, or
// whether they always or never do. Larger IDs always do.
func FirstWith(l firn.Layout, bit int) (at time.Time, always, never bool) {
	if l.Bits() != 64 {
		return at, true, false
	}
	highest := -1
	for _, p := range l.Pieces() {
		if p.Field != "zero" && (p.Field != "const" || p.Const != 0) {
			highest = max(highest, p.Pos+p.Width-1)
		}
	}
	if highest < bit {
		return at, false, true
	}
	if l.Ordered() {
		if p, err := l.Decompose(firn.ID(1) << bit); err == nil && p.Node == 0 && p.Seq == 0 {
			return p.Time, false, false
		}
	}
	return at, true, false
}

// EpochText returns the epoch of a layout as RFC 3339, or as Unix milliseconds
// if that has no such form.
func EpochText(l firn.Layout) string {
	if t := l.Epoch(); t.Nanosecond() == 0 && t.Year() >= 1 && t.Year() <= 9999 {
		return t.Format(time.RFC3339)
	}
	return fmt.Sprint(l.Epoch().UnixMilli())
}

// AppendLayout appends a layout as a JSON object.
func AppendLayout(b []byte, l firn.Layout) []byte {
	b = AppendString(append(b, `{"layout":`...), l.String())
	b = AppendString(append(b, `,"fields":`...), l.Fields())
	b = fmt.Appendf(b, `,"bits":%d,"time_bits":%d,"node_bits":%d,"seq_bits":%d,"random_bits":%d,"unit_ns":%d`,
		l.Bits(), l.TimeBits(), l.NodeBits(), l.SeqBits(), l.RandomBits(), l.Unit().Nanoseconds())
	b = AppendMillis(append(b, `,"epoch_ms":`...), l.Epoch())
	b = AppendMillis(append(b, `,"last_ms":`...), l.Last())
	b = AppendNumber(append(b, `,"max_node":`...), l.MaxNode())
	b = AppendNumber(append(b, `,"max_seq":`...), l.MaxSeq())
	b = strconv.AppendFloat(append(b, `,"ids_per_second":`...), l.IDsPerSecond(), 'f', -1, 64)
	b = fmt.Appendf(b, `,"ordered":%t,"read_only":%t,"format":%q`, l.Ordered(), l.ReadOnly(), l.Format().String())
	b = appendFrom(append(b, `,"negative_from_ms":`...), l, 63)
	b = appendFrom(append(b, `,"inexact_in_javascript_from_ms":`...), l, 53)
	return append(b, '}')
}

// appendFrom appends from when on IDs have this bit: Unix milliseconds, null
// for never, 0 for always.
func appendFrom(b []byte, l firn.Layout, bit int) []byte {
	switch at, always, never := FirstWith(l, bit); {
	case never:
		return append(b, "null"...)
	case always:
		return append(b, '0')
	default:
		return AppendMillis(b, at)
	}
}
