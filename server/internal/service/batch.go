package service

import (
	"encoding/binary"
	"fmt"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
)

// An ID is an ID of either size.
type ID struct {
	hi, lo uint64
	wide   bool // 128 bits
}

// Append appends the ID to dst in a form that fits its size.
func (id ID) Append(dst []byte, f *form.Form) []byte {
	if id.wide {
		return f.Append128(dst, firn.ID128FromUint64s(id.hi, id.lo))
	}
	return f.Append(dst, firn.ID(id.lo))
}

// Uint64 returns a 64-bit ID as a number.
func (id ID) Uint64() uint64 { return id.lo }

// A Run is Count IDs: First, First+Step, First+2*Step and so on.
type Run struct {
	First ID
	Step  uint64
	Count int
}

// A Batch is a firn.BatchOf of either size, and its layout. The zero Batch is
// empty.
type Batch struct {
	layout *firn.Layout
	ids    firn.Batch               // of a 64-bit layout
	ids128 firn.BatchOf[firn.ID128] // of a 128-bit layout
}

// BatchOf returns the Batch of runs, or an error if it has not n IDs.
func BatchOf[I firn.AnyID](l *firn.Layout, runs []firn.RunOf[I], n int) (out Batch, err error) {
	b, err := firn.BatchFromRuns(runs...)
	if err == nil {
		err = setBatch(&out, l, &b, n)
	}
	return out, err
}

// setBatch sets out to a batch, or returns an error if that has not n IDs. It
// makes no copies on the stack: see Front.Take.
func setBatch[I firn.AnyID](out *Batch, l *firn.Layout, b *firn.BatchOf[I], n int) error {
	if b.Len() != n {
		return fmt.Errorf("the source gave %d IDs, not %d", b.Len(), n)
	}
	out.layout = l
	switch b := any(b).(type) {
	case *firn.Batch:
		out.ids = *b
	case *firn.BatchOf[firn.ID128]:
		out.ids128 = *b
	}
	return nil
}

// Layout returns the layout of the IDs.
func (b *Batch) Layout() *firn.Layout { return b.layout }

// Len returns the number of IDs.
func (b *Batch) Len() int { return b.ids.Len() + b.ids128.Len() }

// All yields the IDs in the order in which they were made. Ranging over b.All
// does not allocate.
func (b *Batch) All(yield func(ID) bool) {
	var buf [32 * 8]byte
	size := 8
	if b.ids128.Len() > 0 {
		size = 16
	}
	for lo := 0; lo < b.Len(); lo += len(buf) / size {
		raw := b.AppendRaw(buf[:0], lo, min(lo+len(buf)/size, b.Len()))
		for ; len(raw) > 0; raw = raw[size:] {
			if !yield(idFrom(raw[:size])) {
				return
			}
		}
	}
}

// idFrom returns the ID in 8 or 16 bytes.
func idFrom(raw []byte) ID {
	if len(raw) == 8 {
		return ID{lo: binary.BigEndian.Uint64(raw)}
	}
	return ID{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:]), true}
}

// At returns the ID at an index.
func (b *Batch) At(i int) ID {
	var buf [16]byte
	return idFrom(b.AppendRaw(buf[:0], i, i+1))
}

// Runs returns the IDs as runs; none if the layout has none. One run that does
// not escape costs no allocation, because Runs is inlined.
func (b *Batch) Runs() []Run { return b.appendRuns(make([]Run, 0, 1)) }

func (b *Batch) appendRuns(all []Run) []Run {
	for _, r := range b.ids.Runs() {
		all = append(all, Run{ID{lo: uint64(r.First)}, r.Step, r.Count})
	}
	for _, r := range b.ids128.Runs() {
		all = append(all, Run{idFrom(r.First[:]), r.Step, r.Count})
	}
	return all
}

// AppendRaw appends the IDs with the indexes from lo to hi-1 as 8 or 16 bytes
// each.
func (b *Batch) AppendRaw(dst []byte, lo, hi int) []byte {
	if b.ids128.Len() > 0 {
		return b.ids128.AppendRaw(dst, lo, hi)
	}
	return b.ids.AppendRaw(dst, lo, hi)
}
