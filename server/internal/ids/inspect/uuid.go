package inspect

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/firnid/firn"
)

// uuidv6 is RFC 9562, section 5.6: ticks of 100 ns since the Gregorian
// calendar, in order. Version 1 has the same fields, but with the lowest bits
// of the time on top, which a layout cannot express.
var uuidv6 = sync.OnceValue(func() firn.Layout {
	return firn.MustParseLayout("bits=time:48.const:4=6.time:12.const:2=2.seq:14.node:48,unit=100ns,epoch=1582-10-15T00:00:00Z")
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
func readUUID(n *number, now time.Time, quiet bool) (Reading, bool) {
	if n.size != 128 {
		return Reading{}, false
	}
	hi, lo := n.id128().Uint64s()
	r := Reading{Encoding: n.encoding, Bytes: n.raw(), Plausible: true}
	j := judge{now: now, n: n, r: &r, quiet: quiet}
	j.encoding(firn.UUID)

	if hi == 0 && lo == 0 || ^hi == 0 && ^lo == 0 {
		r.Name = "uuid-nil"
		if hi != 0 {
			r.Name = "uuid-max"
		}
		j.pro("it is the nil or max UUID of RFC 9562, which stands for no ID")
		r.Pieces = []Piece{{"const", 0, 128, lo}}
		return r, true
	}
	version := hi >> 12 & 15
	if lo>>62 != 2 || version < 1 || version > 8 || version == 7 {
		return Reading{}, false
	}
	if about := uuidAbout[version]; n.loose && about != "" && version != 4 {
		return Reading{}, false // too improbable in so few characters
	}
	r.Name = fmt.Sprintf("uuidv%d", version)
	j.pro("its variant and version bits are those of a version %d UUID", version)
	if about := uuidAbout[version]; about != "" {
		j.weigh(-122)
		j.pro("%s", about)
		r.Pieces = []Piece{
			{"rand", 80, 48, hi >> 16},
			{"const", 76, 4, version},
			{"rand", 64, 12, hi & 0xfff},
			{"const", 62, 2, 2},
			{"rand", 0, 62, lo & (1<<62 - 1)},
		}
		return r, true
	}

	// Version 1 is read as the version 6 UUID with the same fields.
	six := hi
	if version == 1 {
		ticks := hi&0xfff<<48 | hi>>16&0xffff<<32 | hi>>32
		six = ticks>>12<<16 | 6<<12 | ticks&0xfff
	}
	l := uuidv6()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], six)
	binary.BigEndian.PutUint64(b[8:], lo)
	parts, err := l.Decompose128(firn.ID128(b))
	if err != nil {
		return Reading{}, false
	}
	r.HasParts, r.Time, r.Node, r.Seq = true, parts.Time, parts.Node, parts.Seq
	if version == 6 {
		r.Layout = l
		for _, p := range l.Pieces() {
			r.Pieces = append(r.Pieces, Piece{p.Field, p.Pos, p.Width, p.Value(r.Bytes)})
		}
	} else {
		r.Pieces = []Piece{
			{"time", 96, 32, hi >> 32},
			{"time", 80, 16, hi >> 16 & 0xffff},
			{"const", 76, 4, 1},
			{"time", 64, 12, hi & 0xfff},
			{"const", 62, 2, 2},
			{"seq", 48, 14, lo >> 48 & 0x3fff},
			{"node", 0, 48, lo & (1<<48 - 1)},
		}
	}
	j.mass = 1
	j.time(&candidate{unit: l.Unit(), seconds: l.Unit().Seconds(), epoch: l.Epoch()})
	j.weigh(math.Log2(j.mass) - 14 - 48)
	if quiet {
		return r, true
	}
	if r.Node>>40&1 == 1 {
		j.pro("the node is a random number, because its group bit is set")
	} else {
		j.pro("the node is the MAC address %s", MAC(r.Node))
	}
	return r, true
}
