package firn

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// A Batch holds n IDs in the order in which they were made. The zero Batch is
// empty. A Batch is immutable and safe for concurrent use by multiple
// goroutines. See BatchOf for its methods.
type Batch = BatchOf[ID]

// A Run is Count IDs: First, First+Step, First+2*Step and so on. See RunOf for
// its fields.
type Run = RunOf[ID]

// A RunOf is a Run of 64-bit or 128-bit IDs.
type RunOf[I AnyID] struct {
	First I
	Step  uint64 // 1 if Count is 1 and the layout has no step
	Count int    // at least 1
}

// A BatchOf is a Batch of 64-bit or 128-bit IDs.
type BatchOf[I AnyID] struct {
	// Either the slots [slot, slot+n) of a composer …
	composer *composer
	slot     uint64
	seed     wide // of the random bits, so that every iteration yields the same IDs

	// … or runs from another source.
	runs []RunOf[I]

	n int
}

// BatchFromRuns returns the batch of the IDs in runs, for a Source that does
// not make them itself. A run that is empty, repeats its ID, has the ID 0 or
// exceeds the greatest ID is an error, and so are more IDs than an int can
// count. The caller ensures that no two runs have the same ID.
func BatchFromRuns[I AnyID](runs ...RunOf[I]) (BatchOf[I], error) {
	n := 0
	for i, r := range runs {
		_, narrow := any(r.First).(ID)
		first := wideOf(&r.First)
		hi, lo := bits.Mul64(r.Step, uint64(r.Count)-1)
		_, carry := bits.Add64(first.lo, lo, 0)
		hi, carry = bits.Add64(first.hi, hi, carry)
		wrong := ""
		switch {
		case r.Count < 1:
			wrong = fmt.Sprintf("has %d IDs", r.Count)
		case first.isZero():
			wrong = "has the ID 0, which is never made"
		case r.Step == 0 && r.Count > 1:
			wrong = "has a step of 0 and would repeat its ID"
		case carry > 0 || narrow && hi > 0:
			wrong = "exceeds the greatest ID"
		case r.Count > math.MaxInt-n:
			wrong = "has more IDs than a batch can hold"
		}
		if wrong != "" {
			return BatchOf[I]{}, fmt.Errorf("firn: run %d of %d %s", i+1, len(runs), wrong)
		}
		n += r.Count
	}
	return BatchOf[I]{runs: slices.Clone(runs), n: n}, nil
}

// newBatch returns the batch of n slots.
func newBatch[I AnyID](c *composer, slot uint64, n int) BatchOf[I] {
	b := BatchOf[I]{composer: c, slot: slot, n: n}
	if !c.random.isZero() {
		b.seed = randomWide()
	}
	return b
}

// Len returns the number of IDs.
func (b BatchOf[I]) Len() int { return b.n }

// All returns an iterator over the IDs in the order in which they were made.
// Every iteration yields the same IDs.
func (b BatchOf[I]) All() iter.Seq[I] { return b.each }

// each is the iterator that All returns. Ranging over it does not allocate.
func (b BatchOf[I]) each(yield func(I) bool) {
	if b.composer != nil && !b.composer.random.isZero() {
		for slot := b.slot; slot < b.slot+uint64(b.n); slot++ {
			if !yield(b.randomAt(slot)) {
				return
			}
		}
		return
	}
	b.eachRun(func(r RunOf[I]) bool { return r.each(yield) })
}

func (r RunOf[I]) each(yield func(I) bool) bool {
	w := wideOf(&r.First)
	for range r.Count {
		if !yield(fromWide[I](w)) {
			return false
		}
		w = w.plus(r.Step)
	}
	return true
}

// String returns the number of IDs, the first and the last one.
func (b BatchOf[I]) String() string {
	switch b.n {
	case 0:
		return "no IDs"
	case 1:
		return fmt.Sprint(b.at(0))
	}
	return fmt.Sprintf("%d IDs, %v to %v", b.n, b.at(0), b.at(b.n-1))
}

// at returns the ID with an index.
func (b BatchOf[I]) at(i int) (id I) {
	_ = any(&id).(encoding.BinaryUnmarshaler).UnmarshalBinary(b.AppendRaw(nil, i, i+1))
	return id
}

// MarshalJSON returns the IDs as a JSON array, each as its own MarshalJSON
// returns it, so that it can be read into a slice of them. The error is always
// nil.
func (b BatchOf[I]) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for id := range b.All() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		switch id := any(id).(type) {
		case ID:
			out = Decimal.Append(out, id)
		case ID128:
			out = UUID.Append128(out, id)
		}
		out = append(out, '"')
	}
	return append(out, ']'), nil
}

// Runs returns the batch as runs of equally spaced IDs, in order: one run for
// each tick if the node field lies below the sequence, and fewer if time and
// sequence form one number in the ID. It returns nil for an empty batch and for
// a layout without runs (see Layout.HasRuns).
func (b BatchOf[I]) Runs() []RunOf[I] { return b.appendRuns(make([]RunOf[I], 0, 1)) }

// appendRuns is most of Runs, so that Runs is inlined: the room for one run is
// then on the stack of a caller that does not keep it.
func (b BatchOf[I]) appendRuns(all []RunOf[I]) []RunOf[I] {
	if b.n == 0 || b.composer != nil && !b.composer.hasRuns() {
		return nil
	}
	return slices.AppendSeq(all, b.eachRun)
}

// eachRun yields the runs. It must not be called for a layout with random bits.
func (b BatchOf[I]) eachRun(yield func(RunOf[I]) bool) {
	if b.composer == nil {
		for _, r := range b.runs {
			if !yield(r) {
				return
			}
		}
		return
	}
	for slot, end := b.slot, b.slot+uint64(b.n); slot < end; {
		r := b.runAt(slot, end)
		if !yield(r) {
			return
		}
		slot += uint64(r.Count)
	}
}

// AppendRaw appends the IDs with the indexes from lo to hi-1 to dst, each in
// the form of Raw: 8 or 16 bytes, big-endian. It is many times faster than
// appending them one by one, and does not allocate if dst has room. As with a
// slice, 0 ≤ lo ≤ hi ≤ Len must hold.
func (b BatchOf[I]) AppendRaw(dst []byte, lo, hi int) []byte {
	if lo < 0 || lo > hi || hi > b.n {
		panic(fmt.Sprintf("firn: AppendRaw: IDs %d to %d of a batch of %d", lo, hi, b.n))
	}
	if b.composer == nil {
		for _, r := range b.runs {
			if lo < r.Count && lo < hi {
				dst = r.appendRaw(dst, lo, min(r.Count, hi))
			}
			lo, hi = max(lo-r.Count, 0), max(hi-r.Count, 0)
		}
		return dst
	}
	slot, end := b.slot+uint64(lo), b.slot+uint64(hi)
	if !b.composer.random.isZero() {
		for ; slot < end; slot++ {
			dst = RunOf[I]{First: b.randomAt(slot)}.appendRaw(dst, 0, 1)
		}
		return dst
	}
	for slot < end {
		r := b.runAt(slot, end)
		dst = r.appendRaw(dst, 0, r.Count)
		slot += uint64(r.Count)
	}
	return dst
}

// appendRaw appends the IDs of the run with the indexes from lo to hi-1.
func (r RunOf[I]) appendRaw(dst []byte, lo, hi int) []byte {
	at, n := len(dst), hi-lo
	switch first := any(r.First).(type) {
	case ID:
		dst = slices.Grow(dst, 8*n)[:at+8*n]
		id := uint64(first) + uint64(lo)*r.Step
		for out := dst[at:]; len(out) >= 8; out = out[8:] {
			binary.BigEndian.PutUint64(out, id)
			id += r.Step
		}
	case ID128:
		dst = slices.Grow(dst, 16*n)[:at+16*n]
		over, step := bits.Mul64(uint64(lo), r.Step)
		high, id := first.Uint64s()
		id, carry := bits.Add64(id, step, 0)
		high += over + carry
		for out := dst[at:]; len(out) >= 16; out = out[16:] {
			binary.BigEndian.PutUint64(out, high)
			binary.BigEndian.PutUint64(out[8:], id)
			id, carry = bits.Add64(id, r.Step, 0)
			high += carry
		}
	}
	return dst
}

// runAt returns the run of the slots that starts at slot and stays below end.
func (b BatchOf[I]) runAt(slot, end uint64) RunOf[I] {
	c := b.composer
	r := RunOf[I]{First: fromWide[I](c.compose128(slot)), Step: 1, Count: 1}
	if c.runShift <= 63 {
		size := uint64(1) << c.runBits
		r.Step, r.Count = 1<<c.runShift, int(min(size-slot&(size-1), end-slot))
	}
	return r
}

// write writes the IDs to dst, which has exactly their number.
func (b BatchOf[I]) write(dst []I) {
	if b.composer != nil && !b.composer.random.isZero() {
		b.writeRandom(dst)
		return
	}
	for r := range b.eachRun {
		writeRun(dst[:r.Count], r.First, r.Step)
		dst = dst[r.Count:]
	}
}

// writeRun fills dst with IDs, starting with first.
func writeRun[I AnyID](dst []I, first I, step uint64) {
	switch dst := any(dst).(type) {
	case []ID:
		id := uint64(any(first).(ID))
		for len(dst) >= 8 { // the loop costs more than the stores
			d := (*[8]ID)(dst)
			d[0], d[1], d[2], d[3] = ID(id), ID(id+step), ID(id+2*step), ID(id+3*step)
			id += 4 * step
			d[4], d[5], d[6], d[7] = ID(id), ID(id+step), ID(id+2*step), ID(id+3*step)
			id += 4 * step
			dst = dst[8:]
		}
		for i := range dst {
			dst[i] = ID(id)
			id += step
		}
	case []ID128:
		w := wideOf(&first)
		for i := range dst {
			dst[i].put(w)
			w = w.plus(step)
		}
	}
}

// writeRandom implements write for IDs with random bits.
func (b BatchOf[I]) writeRandom(dst []I) {
	c := b.composer
	switch dst := any(dst).(type) {
	case []ID:
		for i := range dst {
			slot := b.slot + uint64(i)
			dst[i] = ID(c.compose64(slot) | mixLow(b.seed, slot)&c.random.lo)
		}
	case []ID128:
		if c.random.hi == 0 { // as in UUIDs and ULIDs
			for i := range dst {
				slot := b.slot + uint64(i)
				w := c.compose128(slot)
				w.lo |= mixLow(b.seed, slot) & c.random.lo
				dst[i].put(w)
			}
			return
		}
		for i := range dst {
			slot := b.slot + uint64(i)
			dst[i].put(c.compose128(slot).or(mix(b.seed, slot).and(c.random)))
		}
	}
}

// randomAt returns the ID of a slot, with its random bits.
func (b BatchOf[I]) randomAt(slot uint64) I {
	return fromWide[I](b.composer.compose128(slot).or(mix(b.seed, slot).and(b.composer.random)))
}
