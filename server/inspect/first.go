package inspect

import (
	"time"

	"github.com/firnid/firn"
)

// FirstWith reports from when on IDs of a layout of 64 bits have a bit set: at
// a time, or always or never. IDs of others have it always.
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
