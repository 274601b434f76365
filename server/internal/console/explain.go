package console

import (
	"fmt"
	"math"
	"slices"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// A field is a field of an ID, explained.
type field struct {
	Key    string // as in firn.Piece
	Name   string
	Bits   string   // how many
	Value  string   // in this ID, or its range; may be empty
	Local  string   // the time in it, for scripts
	Detail []string // its meaning, in sentences
}

// explainFields explains the fields of a layout, or of one ID if x is not nil,
// from the top bit down.
func explainFields(l firn.Layout, cuts []cut, x *inspect.Reading) (fields []field) {
	for _, c := range cuts {
		if slices.ContainsFunc(fields, func(f field) bool { return f.Key == c.field }) {
			continue
		}
		f := field{Key: c.field, Name: fieldName(c.field)}
		bits := uint64(0)
		for _, other := range cuts {
			if other.field == c.field {
				bits += uint64(other.width)
			}
		}
		f.Bits = plural(bits, "bit")
		if !l.IsZero() {
			f.explain(l)
		}
		if x != nil {
			f.read(x)
		}
		fields = append(fields, f)
	}
	return fields
}

// explain says what a field means in a layout.
func (f *field) explain(l firn.Layout) {
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	switch f.Key {
	case "time":
		f.Value = "until " + day(l.Last())
		say("Counts every %s since %s.", tick(l.Unit()), day(l.Epoch()))
	case "node":
		f.Value = "0 to " + number(l.MaxNode())
		say("The generator that makes the ID. Each of %s has its own number.", power(l.NodeBits()))
	case "seq":
		f.Value = "0 to " + number(l.MaxSeq())
		say("Counts the IDs of one %s: a node makes up to %s in it.", tick(l.Unit()), power(l.SeqBits()))
	case "rand":
		say("Random, which makes IDs hard to guess.")
	case "const":
		say("Constant: identifies the format.")
	case "zero":
		say("Always 0.")
		if l.Bits() == 64 {
			say("The number is positive even if it is signed, like SQL's bigint.")
		}
	}
}

// read adds what a field means in one ID.
func (f *field) read(x *inspect.Reading) {
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	if !x.HasParts {
		return
	}
	switch f.Key {
	case "time":
		f.Value, f.Local = utc(x.Time), iso(x.Time)
	case "node":
		f.Value = number(x.Node)
		if randomElsewhere(x.Layout) {
			say("Only if Firn made it: other generators put random bits here.")
		}
		if x.Layout.IsZero() || x.Layout.NodeBits() == 48 {
			say("As a MAC address: %s.", inspect.MAC(x.Node))
		}
		if parts := x.NodeText(); parts != "" {
			say("It consists of %s.", parts)
		}
	case "seq":
		f.Value = number(x.Seq)
	}
}

// power formats 2 to the n as a count.
func power(n int) string { return count(math.Exp2(float64(n))) }

// randomElsewhere reports whether other generators of a format fill node and
// sequence with random bits.
func randomElsewhere(l firn.Layout) bool { return l.Preset() == "uuidv7" || l.Preset() == "ulid" }

// A text is an ID in one encoding.
type text struct{ Name, Text string }

// textsOf returns the ID in all encodings: first as its layout writes it, if
// that is a number or a UUID.
func textsOf(x *inspect.Reading) (texts []text) {
	for _, f := range []firn.Format{firn.UUID, firn.Decimal, firn.Hex, firn.Base32, firn.Base36, firn.Base58, firn.Base62, firn.Binary} {
		if f.Fits(x.Bits()) == nil {
			texts = append(texts, text{f.String(), string(x.Bytes.Append(nil, f))})
		}
	}
	if texts == nil {
		texts = []text{{"hex", x.Hex()}, {"dec", x.Dec()}}
	}
	return texts
}
