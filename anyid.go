package firn

// AnyID is the constraint that ID and ID128 satisfy.
type AnyID interface{ ID | ID128 }

// fromWide returns the ID with a number.
func fromWide[I AnyID](w wide) (id I) {
	switch id := any(&id).(type) {
	case *ID:
		*id = ID(w.lo)
	case *ID128:
		id.put(w)
	}
	return id
}

// wideOf returns the number of an ID.
func wideOf[I AnyID](id *I) wide {
	switch id := any(id).(type) {
	case *ID:
		return wide{0, uint64(*id)}
	case *ID128:
		hi, lo := id.Uint64s()
		return wide{hi, lo}
	}
	return wide{}
}
