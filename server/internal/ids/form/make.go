package form

import (
	"encoding/hex"
	"time"

	"github.com/firnid/firn"
)

// JSON returns an ID that was composed for JSON.
func (id ID) JSON() any {
	return struct {
		Dec string `json:"dec"`
		Hex string `json:"hex"`
	}{string(id.Append(nil, Of(firn.Decimal))), hex.EncodeToString(id)}
}

// Compose composes an ID of 64 or 128 bits.
func Compose(l firn.Layout, p firn.Parts) (ID, error) {
	if l.Bits() == 128 {
		id, err := l.Compose128(p)
		return id[:], err
	}
	id, err := l.Compose(p)
	return firn.Raw.Append(nil, id), err
}

// Range returns the lowest and the highest ID of a time range.
func Range(l firn.Layout, from, to time.Time) (lo, hi ID, err error) {
	if l.Bits() == 128 {
		lo, hi, err := l.Range128(from, to)
		return lo[:], hi[:], err
	}
	first, last, err := l.Range(from, to)
	return firn.Raw.Append(nil, first), firn.Raw.Append(nil, last), err
}
