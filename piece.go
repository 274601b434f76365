package firn

import "fmt"

// A Field is what bits of an ID are for.
type Field uint8

// The fields of IDs.
const (
	FieldZero Field = iota // bits on top that are always zero
	FieldTime
	FieldNode
	FieldSeq
	FieldConst
	FieldRand
)

var fieldNames = [...]string{"zero", "time", "node", "seq", "const", "rand"}

// String returns the name of f in the text of a layout, or "Field(n)" if f is
// not a field. FieldZero, which such a text leaves out, is "zero".
func (f Field) String() string {
	if int(f) >= len(fieldNames) {
		return fmt.Sprintf("Field(%d)", uint8(f))
	}
	return fieldNames[f]
}

// A Piece is a run of bits of an ID that belong to one field.
type Piece struct {
	Field    Field
	Width    int    // in bits
	Pos      int    // position of its lowest bit in the ID, counted from the lowest
	Low      int    // position of that bit in the field
	Reversed bool   // the bits are in reversed order
	Const    uint64 // the value, if Field is FieldConst
}

// Pieces returns the pieces of an ID from the topmost bit down, leaving out
// empty ones.
func (l Layout) Pieces() []Piece {
	var pieces []Piece
	used := int(l.pieces[0].pos) + int(l.pieces[0].width)
	if top := int(l.size) - used; top > 0 {
		pieces = append(pieces, Piece{Width: top, Pos: used})
	}
	for _, p := range l.pieces[:l.n] {
		if p.width == 0 {
			continue
		}
		out := Piece{Field: p.field, Width: int(p.width), Pos: int(p.pos), Low: int(p.low), Reversed: p.reverse}
		if p.field == FieldConst {
			out.Const = l.consts.shr(p.pos).lo & mask(p.width)
		}
		pieces = append(pieces, out)
	}
	return pieces
}

// Value returns the bits of this piece in an ID, in the order of the field:
// they are reversed back if the piece is Reversed. b is the ID as big-endian
// bytes. For a piece wider than 64 bits, Value returns its lowest 64.
func (p Piece) Value(b []byte) uint64 {
	var v uint64
	for i := range min(p.Width, 64) {
		bit := p.Pos + i
		if at := len(b) - 1 - bit/8; at >= 0 {
			v |= uint64(b[at]>>(bit%8)&1) << i
		}
	}
	if p.Reversed {
		v = reverse(v, uint8(p.Width))
	}
	return v
}
