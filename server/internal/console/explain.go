package console

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// explainLayout explains each field of a layout.
func explainLayout(l firn.Layout) (fields []field) {
	cuts := cutsOf(l)
	for _, key := range orderOf(cuts) {
		bits := bitsOf(cuts, key)
		f := field{Key: key, Name: fieldName(key), Bits: bits}
		switch key {
		case "time":
			f.Value = "until " + day(l.Last())
			f.Detail = []string{fmt.Sprintf("Counts every %s since %s.", tick(l.Unit()), day(l.Epoch()))}
		case "node":
			f.Value = "0 to " + number(l.MaxNode())
			f.Detail = []string{fmt.Sprintf("Tells %s generators apart, so that no two make the same ID.", power(l.NodeBits()))}
		case "seq":
			f.Value = "0 to " + number(l.MaxSeq())
			f.Detail = []string{fmt.Sprintf("Counts the IDs of one %s: a node makes up to %s in it.", tick(l.Unit()), power(l.SeqBits()))}
		case "rand":
			f.Detail = []string{"Random, which makes IDs hard to guess."}
		case "const":
			f.Detail = []string{"Constant: identifies the format."}
		case "zero":
			f.Detail = []string{zeroDetail(l)}
		}
		fields = append(fields, f)
	}
	return fields
}

func zeroDetail(l firn.Layout) string {
	if l.Bits() == 64 {
		return "Always 0, so that the number is positive even if it is signed, like SQL's bigint."
	}
	return "Always 0."
}

// explain explains each field of a reading.
func explain(x *inspect.Reading) (fields []field) {
	cuts := cutsOfReading(x)
	l := x.Layout
	for _, key := range orderOf(cuts) {
		bits := bitsOf(cuts, key)
		f := field{Key: key, Name: fieldName(key), Bits: bits}
		known := x.HasParts && !l.IsZero()
		switch {
		case key == "time" && x.HasParts:
			f.Value = utc(x.Time)
			if known {
				f.Detail = append(f.Detail, fmt.Sprintf("%s since %s: when the ID was made.", ticks(x.Time, l), day(l.Epoch())))
			} else {
				f.Detail = append(f.Detail, "When the ID was made.")
			}
		case key == "node" && x.HasParts:
			f.Value = number(x.Node)
			if known {
				f.Detail = append(f.Detail, fmt.Sprintf("The generator that made it, from 0 to %s. Each has its own number, so that no two make the same ID.", number(l.MaxNode())))
				if randomElsewhere(l) {
					f.Detail = append(f.Detail, "Only if Firn made it: other generators put random bits here.")
				}
			} else {
				f.Detail = append(f.Detail, "The generator that made it.")
			}
			if l.IsZero() || l.NodeBits() == 48 {
				f.Detail = append(f.Detail, "As a MAC address: "+inspect.MAC(x.Node)+".")
			}
			if parts := x.NodeText(); parts != "" {
				f.Detail = append(f.Detail, "It consists of "+parts+".")
			}
		case key == "seq" && x.HasParts:
			f.Value = number(x.Seq)
			f.Detail = []string{"Its number among the IDs of one tick."}
			if known && x.Seq < math.MaxUint64 {
				f.Detail = []string{fmt.Sprintf("Counts from 0 in each %s: this is number %s of up to %s.", tick(l.Unit()), number(x.Seq), power(l.SeqBits()))}
			}
		case key == "rand":
			f.Value = "chance"
			f.Detail = []string{"Random, which makes the ID hard to guess."}
		case key == "const":
			f.Detail = []string{"Constant: identifies the format."}
			f.Value = "fixed"
		case key == "zero":
			f.Value = "0"
			f.Detail = []string{zeroDetail(l)}
		}
		fields = append(fields, f)
	}
	return fields
}

// randomElsewhere reports whether other generators of a format fill node and
// sequence with random bits.
func randomElsewhere(l firn.Layout) bool { return l.Preset() == "uuidv7" || l.Preset() == "ulid" }

// ticks returns how many units a time is after the epoch.
func ticks(t time.Time, l firn.Layout) string {
	unit, epoch := l.Unit(), l.Epoch()
	if d := t.Sub(epoch); d > math.MinInt64 && d < math.MaxInt64 {
		return plural(uint64(d/unit), tick(unit))
	}
	return count(inspect.Age(epoch, t)/unit.Seconds()) + " " + tick(unit) + "s"
}

// A text is an ID in one encoding.
type text struct {
	Name, Text string
	About      string
	Wide       bool
}

// textsOf returns the ID in all encodings, the layout's own first.
func textsOf(x *inspect.Reading) (texts []text) {
	formats := []firn.Format{firn.UUID, firn.Decimal, firn.Hex, firn.Base32, firn.Base36, firn.Base58, firn.Base62, firn.Binary}
	abouts := map[firn.Format]string{
		firn.Decimal: "decimal", firn.Hex: "hexadecimal", firn.Base32: "Crockford's alphabet", firn.Base36: "upper case",
		firn.Base58: "Bitcoin's alphabet", firn.Base62: "digits and letters", firn.Binary: "bits", firn.UUID: "RFC 9562",
	}
	for _, f := range formats {
		if f.Fits(x.Bits()) == nil {
			texts = append(texts, text{f.String(), string(x.Bytes.Append(nil, f)), abouts[f], f == firn.Binary})
		}
	}
	if texts == nil {
		return []text{{"dec", x.Dec(), "decimal", false}, {"hex", x.Hex(), "hexadecimal", false}}
	}
	if x.Bits() == 64 {
		if signed := int64(binary.BigEndian.Uint64(x.Bytes)); signed < 0 {
			texts = append(texts, text{"signed", fmt.Sprint(signed), "as in SQL's bigint", false})
		}
	}
	return texts
}

// plainText formats an ID as its layout does.
func plainText(x *inspect.Reading) string {
	switch x.Bits() {
	case 64:
		return x.Dec()
	case 128:
		return string(x.Bytes.Append(nil, firn.UUID))
	}
	return x.Hex()
}
