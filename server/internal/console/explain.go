package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// An anatomy shows the bits of an ID, and what its fields mean.
type anatomy struct {
	Label  string // of the bits, for screen readers
	Bits   []bit  // the highest first
	Fields []field
}

// A bit is a bit of an ID.
type bit struct {
	Field      firn.Field
	Digit      string // empty without an ID
	Pos        int
	Begin, End bool // of a run of bits of the field
}

func (b bit) attributes() templ.Attributes {
	begin, end := "", ""
	if b.Begin {
		begin = "begin"
	}
	if b.End {
		end = "end"
	}
	all := class(b.Field.String(), begin, end)
	if b.Pos%16 == 15 || b.Pos == 0 {
		all["data-pos"] = strconv.Itoa(b.Pos)
	}
	return all
}

// A field is a field of an ID, explained.
type field struct {
	Key    firn.Field
	Name   string
	Width  uint64   // in bits
	Value  string   // in this ID, or its range; may be empty
	Local  string   // the time in it, for scripts
	Detail []string // its meaning, in sentences
}

// anatomyOf explains the IDs of a layout.
func anatomyOf(l firn.Layout) anatomy {
	a := dissect(&inspect.Reading{Layout: l, Bytes: make(form.ID, l.Bits()/8)})
	for i := range a.Bits {
		a.Bits[i].Digit = ""
	}
	return a
}

// dissect explains an ID.
func dissect(x *inspect.Reading) (a anatomy) {
	var words []string
	for _, p := range x.Pieces() {
		words = append(words, plural(uint64(p.Width), "bit")+" "+fieldName(p.Field))
		for pos := p.Pos + p.Width - 1; pos >= p.Pos; pos-- {
			digit := x.Bytes[len(x.Bytes)-1-pos/8] >> (pos % 8) & 1
			a.Bits = append(a.Bits, bit{p.Field, string('0' + digit), pos, pos == p.Pos+p.Width-1, pos == p.Pos})
		}
		if i := slices.IndexFunc(a.Fields, func(f field) bool { return f.Key == p.Field }); i >= 0 {
			a.Fields[i].Width += uint64(p.Width)
			continue
		}
		f := field{Key: p.Field, Name: fieldName(p.Field), Width: uint64(p.Width)}
		if !x.Layout.IsZero() {
			f.explain(x.Layout)
		}
		f.read(x)
		a.Fields = append(a.Fields, f)
	}
	a.Label = fmt.Sprintf("%d bits, the highest first: %s", x.Bits(), strings.Join(words, ", "))
	return a
}

// fieldName returns the name of a field for people.
func fieldName(field firn.Field) string {
	switch field {
	case firn.FieldSeq:
		return "sequence"
	case firn.FieldConst:
		return "fixed"
	case firn.FieldRand:
		return "random"
	case firn.FieldZero:
		return "unused"
	}
	return field.String()
}

// explain says what a field means in a layout.
func (f *field) explain(l firn.Layout) {
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	switch f.Key {
	case firn.FieldTime:
		f.Value = "until " + day(l.Last())
		say("Counts every %s since %s.", unitName(l.Unit()), day(l.Epoch()))
	case firn.FieldNode:
		f.Value = "0 to " + number(l.MaxNode())
		say("The generator that makes the ID. Each of %s has its own number.", power(l.NodeBits()))
	case firn.FieldSeq:
		f.Value = "0 to " + number(l.MaxSeq())
		say("Counts the IDs of one %s: a node makes up to %s in it.", unitName(l.Unit()), power(l.SeqBits()))
	case firn.FieldRand:
		say("Random, which makes IDs hard to guess.")
	case firn.FieldConst:
		say("Constant: identifies the format.")
	case firn.FieldZero:
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
	case firn.FieldTime:
		f.Value, f.Local = utc(x.Time), iso(x.Time)
	case firn.FieldNode:
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
	case firn.FieldSeq:
		f.Value = number(x.Seq)
	}
}

// power formats 2 to the n as a count.
func power(n int) string { return count(math.Exp2(float64(n))) }

// randomElsewhere reports whether other generators of a format fill node and
// sequence with random bits.
func randomElsewhere(l firn.Layout) bool { return l.Preset() == "uuidv7" || l.Preset() == "ulid" }
