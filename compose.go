package firn

// A composer turns slots into IDs for one node of one layout.
//
// A slot is tick<<sequenceBits | sequence: one point on a node's number line.
// Generators count in slots only, and the node is put in here, afterwards, so
// a sequence that overflows carries into the tick and can never reach the
// node. A composer is immutable.
type composer struct {
	base    wide // the node and the constants, in place
	random  wide // marks the random bits
	seqBits uint8

	n     uint8
	moves [maxPieces]move // from the lowest slot bit up

	// In a run of IDs whose slots differ only in their runBits lowest bits, each
	// ID is the one before plus 1<<runShift.
	runBits, runShift uint8
}

// A move copies a piece of the slot to its place in the ID.
type move struct {
	from, width, to uint8
	reverse         bool
}

func newComposer(l *Layout, node uint64) *composer {
	c := &composer{base: l.place(0, node, 0), seqBits: l.seqBits}
	for _, f := range []field{fieldSeq, fieldTime} {
		for i := int(l.n) - 1; i >= 0; i-- {
			p := l.pieces[i]
			if p.field != f || p.width == 0 {
				continue
			}
			m := move{from: p.low, width: p.width, to: p.pos, reverse: p.reverse && p.width > 1}
			if f == fieldTime {
				m.from += l.seqBits
			}
			c.add(m)
		}
	}
	for _, p := range l.pieces[:l.n] {
		if p.field == fieldRand {
			c.random = c.random.or(ones(p.width).shl(p.pos))
		}
	}
	if first := c.moves[0]; c.n > 0 && !first.reverse {
		c.runBits, c.runShift = first.width, first.to
	}
	return c
}

// add appends a move, as part of the one before where the bits lie side by side
// in the slot and in the ID: Hazelcast's tick and sequence become one move.
func (c *composer) add(m move) {
	if m.from >= 63 {
		return // slots have 63 bits; NewGenerator refuses layouts that need more
	}
	m.width = min(m.width, 63-m.from)
	if c.n > 0 {
		last := &c.moves[c.n-1]
		if !m.reverse && !last.reverse && last.from+last.width == m.from && last.to+last.width == m.to {
			last.width += m.width
			return
		}
	}
	c.moves[c.n] = m
	c.n++
}

// HasRuns reports whether batches of the layout can be written as runs: IDs at
// equal distances. They cannot where IDs have random bits, or where the step
// from one to the next is 2^64 or more.
func (l Layout) HasRuns() bool {
	return l.size == 64 && l.randBits == 0 || l.size == 128 && newComposer(&l, 0).hasRuns()
}

func (c *composer) hasRuns() bool { return c.random.isZero() && c.runShift < 64 }

// wide is the ID of a slot, with its random bits zero.
func (c *composer) wide(slot uint64) wide {
	w := c.base
	for _, m := range c.moves[:c.n] {
		v := slot >> m.from & mask(m.width)
		if m.reverse {
			v = reverse(v, m.width)
		}
		w = w.or(wide{0, v}.shl(m.to))
	}
	return w
}

// low is wide for layouts of 64 bits.
func (c *composer) low(slot uint64) uint64 {
	w := c.base.lo
	for _, m := range c.moves[:c.n] {
		v := slot >> m.from & mask(m.width)
		if m.reverse {
			v = reverse(v, m.width)
		}
		w |= v << m.to
	}
	return w
}

// A reversed piece that is cut to the slot's 63 bits would land in the wrong
// place: cutsReversed reports it, so that NewGenerator can refuse the layout.
func cutsReversed(l *Layout) bool {
	for _, p := range l.pieces[:l.n] {
		if p.field == fieldTime && p.reverse && int(p.low)+int(p.width)+int(l.seqBits) > 63 {
			return true
		}
	}
	return false
}
