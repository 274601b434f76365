package firn

import "fmt"

// Compose returns the ID with these parts. The time is truncated to its tick,
// and random bits are zero. A part that does not fit is a *RangeError; values
// are never masked. Compose returns any ID that the format can hold, including
// 0, which no generator makes.
func (l Layout) Compose(p Parts) (ID, error) {
	w, err := l.composeParts(p, 64, "Compose128")
	return ID(w.lo), err
}

// Compose128 is Compose for layouts of 128 bits.
func (l Layout) Compose128(p Parts) (ID128, error) {
	w, err := l.composeParts(p, 128, "Compose")
	return ID128FromUint64s(w.hi, w.lo), err
}

// Decompose splits an ID into its parts. It is an error if constant or zero
// bits of the ID differ from those of the layout.
func (l Layout) Decompose(id ID) (Parts, error) {
	if err := l.checkBits(64, "Decompose128"); err != nil {
		return Parts{}, err
	}
	return l.decomposeWide(wide{0, uint64(id)}, 0)
}

// Decompose128 is Decompose for layouts of 128 bits.
func (l Layout) Decompose128(id ID128) (Parts, error) {
	if err := l.checkBits(128, "Decompose"); err != nil {
		return Parts{}, err
	}
	hi, lo := id.Uint64s()
	return l.decomposeWide(wide{hi, lo}, 0)
}

// DecomposeBytes is like Decompose, for the big-endian bytes of an ID of any
// size. The length of b must be Bits/8.
func (l Layout) DecomposeBytes(b []byte) (Parts, error) {
	if err := l.checkValid(); err != nil {
		return Parts{}, err
	}
	if len(b) != int(l.size)/8 {
		return Parts{}, fmt.Errorf("firn: an ID of layout %s has %d bytes, not %d", l, l.size/8, len(b))
	}
	// Only the first 16 bytes matter: in every longer layout the bits below are
	// random (layoutOf makes sure of it).
	var w wide
	for i := range min(len(b), 16) {
		w = w.shl(8)
		w.lo |= uint64(b[i])
	}
	return l.decomposeWide(w, l.size-min(l.size, 128))
}

// composeParts implements Compose; size and twin are those of checkBits.
func (l *Layout) composeParts(p Parts, size uint8, twin string) (wide, error) {
	if err := l.checkBits(size, twin); err != nil {
		return wide{}, err
	}
	tick, err := l.tickIn(p.Time)
	if err != nil {
		return wide{}, err
	}
	if p.Node > l.MaxNode() {
		return wide{}, l.rangeError("node", p.Node, l.MaxNode())
	}
	if p.Seq > l.MaxSeq() {
		return wide{}, l.rangeError("sequence", p.Seq, l.MaxSeq())
	}
	return l.assemble(tick, p.Node, p.Seq), nil
}

// assemble returns the ID with these fields. Values must fit; random bits are
// zero.
func (l *Layout) assemble(tick, node, seq uint64) wide {
	w := l.consts
	for _, p := range l.pieces[:l.n] {
		var v uint64
		switch p.field {
		case FieldTime:
			v = tick
		case FieldNode:
			v = node
		case FieldSeq:
			v = seq
		default:
			continue
		}
		v = v >> p.low & mask(p.width)
		if p.reverse {
			v = reverse(v, p.width)
		}
		w = w.or(wide{0, v}.shl(p.pos))
	}
	return w
}

// extract returns the bits of one field. The positions of pieces count from bit
// cut.
func (l *Layout) extract(w wide, f Field, cut uint8) uint64 {
	var v uint64
	for _, p := range l.pieces[:l.n] {
		if p.field != f || p.width == 0 {
			continue
		}
		b := w.shr(p.pos-cut).lo & mask(p.width)
		if p.reverse {
			b = reverse(b, p.width)
		}
		v |= b << p.low
	}
	return v
}

func (l *Layout) decomposeWide(w wide, cut uint8) (Parts, error) {
	if err := l.checkFixed(w); err != nil {
		return Parts{}, err
	}
	t, err := l.timeOf(l.extract(w, FieldTime, cut))
	if err != nil {
		return Parts{}, err
	}
	return Parts{Time: t, Node: l.extract(w, FieldNode, cut), Seq: l.extract(w, FieldSeq, cut)}, nil
}

// checkFixed returns an error for the highest bits in which w differs from the
// layout: zero bits at the top, and constants.
func (l *Layout) checkFixed(w wide) error {
	if used := l.pieces[0].pos + l.pieces[0].width; !w.shr(used).isZero() {
		return fmt.Errorf("firn: not an ID of layout %s: %s must be zero", *l, bitsName(used, l.size-used))
	}
	for _, p := range l.pieces[:l.n] {
		got, want := w.shr(p.pos).lo&mask(p.width), l.consts.shr(p.pos).lo&mask(p.width)
		if p.field == FieldConst && got != want {
			return fmt.Errorf("firn: not an ID of layout %s: %s is %d, not %d", *l, l.constName(p), got, want)
		}
	}
	return nil
}

func bitsName(pos, width uint8) string {
	if width == 1 {
		return fmt.Sprintf("bit %d", pos)
	}
	return fmt.Sprintf("bits %d..%d", pos+width-1, pos)
}

// constName describes a constant, by its meaning if a preset defines one.
func (l *Layout) constName(p piece) string {
	if name := l.presetOf().constNames[p.pos]; name != "" {
		return name + " (" + bitsName(p.pos, p.width) + ")"
	}
	return "the constant in " + bitsName(p.pos, p.width)
}
