package firn

import "math/bits"

// A composer turns slots into IDs for one node of one layout.
//
// A slot is tick<<sequenceBits | sequence: one point on a node's number line.
// Generators count only in slots, and the composer adds the node afterwards. So
// a sequence that overflows carries into the tick and can never reach the node.
// A composer is immutable.
type composer struct {
	base    wide // the node and the constants, in place
	random  wide // has the random bits set
	seqBits uint8

	count uint8
	moves [maxPieces]move // from the lowest slot bit up

	// Most layouts have one or two moves. Then these fields say everything: the
	// slot's lowest bits go to low or high, and the others by the last move.
	plain    bool
	reversed bool   // the last move reverses the bits
	lowBits  uint64 // slot bits that the first of two moves puts into the ID's lower half
	highBits uint64 // or into its upper half
	upper    bool   // the last move goes to the upper half
	lowTo    uint8
	lastFrom uint8
	lastTo   uint8 // within the upper half, if upper is set

	// In a run of IDs whose slots differ only in their runBits lowest bits,
	// each ID is the previous one plus 1<<runShift.
	runBits, runShift uint8
}

// A move copies a piece of the slot to its place in the ID.
type move struct {
	from, width, to uint8
	reverse         bool
}

func newComposer(l *Layout, node uint64) *composer {
	c := &composer{base: l.assemble(0, node, 0), seqBits: l.seqBits}
	for _, f := range []Field{FieldSeq, FieldTime} {
		for i := int(l.n) - 1; i >= 0; i-- {
			p := l.pieces[i]
			if p.field != f || p.width == 0 {
				continue
			}
			m := move{from: p.low, width: p.width, to: p.pos, reverse: p.reverse && p.width > 1}
			if f == FieldTime {
				m.from += l.seqBits
			}
			c.add(m)
		}
	}
	for _, p := range l.pieces[:l.n] {
		if p.field == FieldRand {
			c.random = c.random.or(ones(p.width).shl(p.pos))
		}
	}
	c.simplify(l.size)
	if first := c.moves[0]; c.count > 0 && !first.reverse {
		c.runBits, c.runShift = first.width, first.to
	}
	return c
}

// add appends a move. It merges it with the previous one if the bits are
// adjacent both in the slot and in the ID: Hazelcast's tick and sequence become
// one move.
func (c *composer) add(m move) {
	if m.from >= 63 {
		return // slots have 63 bits; NewGenerator refuses layouts that need more
	}
	m.width = min(m.width, 63-m.from)
	if c.count > 0 {
		last := &c.moves[c.count-1]
		if !m.reverse && !last.reverse && last.from+last.width == m.from && last.to+last.width == m.to {
			last.width += m.width
			return
		}
	}
	c.moves[c.count] = m
	c.count++
}

// simplify determines whether the moves are plain: no more than two, of which
// only the last reverses bits, none across the middle of a wide ID, and the
// last in its upper half. Bits of a slot above the last move are zero, because
// a generator limits them.
func (c *composer) simplify(size uint8) {
	if c.count == 0 || c.count > 2 {
		return
	}
	last := c.moves[c.count-1]
	half := uint8(0)
	if size > 64 {
		if half = 64; last.to < half {
			return
		}
		c.upper = true
	}
	c.lastFrom, c.lastTo, c.reversed = last.from, last.to-half, last.reverse
	if c.reversed {
		c.lastTo = 64 - c.lastTo - last.width
	}
	if c.count == 2 {
		first := c.moves[0]
		if first.reverse || first.from != 0 || first.to < 64 && first.to+first.width > 64 {
			return
		}
		if c.lowTo = first.to; first.to < 64 {
			c.lowBits = mask(first.width)
		} else {
			c.lowTo -= 64
			c.highBits = mask(first.width)
		}
	}
	c.plain = c.count == 1 && last.from == 0 || c.count == 2 && last.from == c.moves[0].width
}

// placeLast puts the bits of the last move into place.
func (c *composer) placeLast(slot uint64) uint64 {
	v := slot >> (c.lastFrom & 63)
	if c.reversed {
		return bits.Reverse64(v) >> (c.lastTo & 63)
	}
	return v << (c.lastTo & 63)
}

func (c *composer) hasRuns() bool { return c.random.isZero() && c.runShift < 64 }

// compose128 returns the ID of a slot, with zero random bits.
func (c *composer) compose128(slot uint64) wide {
	if c.plain && c.upper {
		to := c.lowTo & 63
		return wide{c.base.hi | slot&c.highBits<<to | c.placeLast(slot), c.base.lo | slot&c.lowBits<<to}
	}
	return c.composeByMoves(slot)
}

// composeByMoves implements compose128 for any moves.
func (c *composer) composeByMoves(slot uint64) wide {
	w := c.base
	for _, m := range c.moves[:c.count] {
		v := slot >> m.from & mask(m.width)
		if m.reverse {
			v = reverse(v, m.width)
		}
		w = w.or(wide{0, v}.shl(m.to))
	}
	return w
}

// compose64 is compose128 for layouts of 64 bits.
func (c *composer) compose64(slot uint64) uint64 {
	if c.plain {
		return c.base.lo | slot&c.lowBits<<(c.lowTo&63) | c.placeLast(slot)
	}
	return c.composeByMoves(slot).lo
}
