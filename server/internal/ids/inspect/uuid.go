package inspect

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// uuidv6 is RFC 9562, section 5.6: ticks of 100 ns since the Gregorian
// calendar, in order. Version 1 has the same fields, but with the lowest bits
// of the time on top, which a layout cannot express.
var uuidv6 = sync.OnceValue(func() firn.Layout {
	return firn.MustParseLayout("bits=time:48.const:4=6.time:12.const:2=2.seq:14.node:48,unit=100ns," +
		"epoch=1582-10-15T00:00:00Z")
})

// uuidTimes judges the parts of versions 1 and 6.
var uuidTimes = sync.OnceValue(func() *candidate {
	c := newCandidate(uuidv6())
	c.profile, c.format = profile{anyNode: true, anySeq: true}, firn.UUID
	return c
})

// uuidAbout describes the versions without a time.
var uuidAbout = [16]string{
	2: "a DCE security UUID: a user ID and part of a time",
	3: "an MD5 hash of a name, without a time",
	4: "122 random bits, without time, node or sequence",
	5: "a SHA-1 hash of a name, without a time",
	8: "a vendor-specific format",
}

// readUUID reads the UUIDs of RFC 9562 that are not a preset. Version 7 is a
// preset.
func readUUID(n *form.Decoding, now time.Time) (Reading, bool) {
	if n.Bits() != 128 {
		return Reading{}, false
	}
	hi, lo := firn.ID128(n.Bytes).Uint64s()
	r := Reading{Form: n.Form, Bytes: n.Bytes, Plausible: true, decoding: n, now: now, weight: formWeight(n, firn.UUID)}
	switch {
	case hi == 0 && lo == 0:
		r.Name = "uuid-nil"
		return r, true
	case ^hi == 0 && ^lo == 0:
		r.Name = "uuid-max"
		return r, true
	}
	version := hi >> 12 & 15
	if lo>>62 != 2 || version < 1 || version > 8 || version == 7 {
		return Reading{}, false
	}
	name := fmt.Sprintf("uuidv%d", version)
	if uuidAbout[version] != "" {
		r.Name = name
		r.weight -= 122
		return r, !n.Ambiguous || version == 4 // the others are too improbable in so few characters
	}

	// Version 1 is read as the version 6 UUID with the same fields.
	six := *n
	if version == 1 {
		ticks := hi&0xfff<<48 | hi>>16&0xffff<<32 | hi>>32
		six.Bytes = binary.BigEndian.AppendUint64(nil, ticks>>12<<16|6<<12|ticks&0xfff)
		six.Bytes = binary.BigEndian.AppendUint64(six.Bytes, lo)
	}
	r, err := uuidTimes().read(&six, now)
	if err != nil {
		return r, false
	}
	r.weigh()
	r.Name, r.Bytes, r.decoding = name, n.Bytes, n
	if version == 1 {
		r.Layout = firn.Layout{}
	}
	return r, true
}

// uuidReasons adds what the version of a UUID says.
func (r *Reading) uuidReasons(l *evidence) {
	if r.Name == "uuid-nil" || r.Name == "uuid-max" {
		l.pro("it is the nil or max UUID of RFC 9562, which stands for no ID")
		return
	}
	version := r.Bytes[6] >> 4
	l.pro("its variant and version bits are those of a version %d UUID", version)
	switch {
	case r.candidate == nil:
		l.pro("%s", uuidAbout[version])
	case r.Node>>40&1 == 1:
		l.pro("the node is a random number, because its group bit is set")
	default:
		l.pro("the node is the MAC address %s", MAC(r.Node))
	}
}

// uuidPieces returns the bits of a UUID that is not a layout.
func uuidPieces(b []byte) []firn.Piece {
	piece := func(field firn.Field, pos, width int) firn.Piece {
		return firn.Piece{Field: field, Pos: pos, Width: width}
	}
	hi, lo := firn.ID128(b).Uint64s()
	switch {
	case lo>>62 != 2:
		return []firn.Piece{piece(firn.FieldConst, 0, 128)} // nil or max
	case hi>>12&15 == 1:
		return []firn.Piece{
			piece(firn.FieldTime, 96, 32), piece(firn.FieldTime, 80, 16), piece(firn.FieldConst, 76, 4),
			piece(firn.FieldTime, 64, 12), piece(firn.FieldConst, 62, 2), piece(firn.FieldSeq, 48, 14),
			piece(firn.FieldNode, 0, 48),
		}
	}
	return []firn.Piece{
		piece(firn.FieldRand, 80, 48), piece(firn.FieldConst, 76, 4), piece(firn.FieldRand, 64, 12),
		piece(firn.FieldConst, 62, 2), piece(firn.FieldRand, 0, 62),
	}
}
