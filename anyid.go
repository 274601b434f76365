package firn

// AnyID is the constraint that ID and ID128 satisfy.
type AnyID[I any] interface {
	ID | ID128
	fromWide(wide) I
	wide() wide
	plus(uint64) I
}

func (ID) fromWide(w wide) ID { return ID(w.lo) }

func (id ID) plus(step uint64) ID { return id + ID(step) }

func (id ID) wide() wide { return wide{0, uint64(id)} }

func (ID128) fromWide(w wide) ID128 { return ID128FromUint64s(w.hi, w.lo) }

func (id ID128) wide() wide { hi, lo := id.Uint64s(); return wide{hi, lo} }

func (id ID128) plus(step uint64) ID128 {
	hi, lo := id.Uint64s()
	sum := lo + step
	if sum < lo {
		hi++
	}
	return ID128FromUint64s(hi, sum)
}
