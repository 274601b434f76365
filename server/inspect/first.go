package inspect

import (
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
