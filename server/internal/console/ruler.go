package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// A ruler draws the bits of an ID: the highest first, in chunks of 16, which
// narrow screens stack.
type ruler struct {
	Bits   int
	Label  string // for screen readers
	Digits bool   // the bits have values
	Chunks []chunk
}

const (
	chunkBits = 16
	roomy     = 8 // bits needed for a field's whole name
)

// A chunk is 16 bits of a ruler.
type chunk struct {
	Hi, Lo int // numbers of its first and last bit
	Segs   []seg
}

// A seg is the part of a field in a chunk.
type seg struct {
	Field      string
	Span       int
	Label      string // the field's name, in the segment that shows it
	Width      string // its number of bits, if there is room
	Value      string // its value, if there is an ID
	Begin, End bool   // whether the piece begins or ends here
	Digits     string // 0, 1, or a point for each bit
}

// A cut is a run of bits of one field.
type cut struct {
	field      string
	pos, width int
	value      string
}

func cutsOf(l firn.Layout) (cuts []cut) {
	for _, p := range l.Pieces() {
		cuts = append(cuts, cut{field: p.Field, pos: p.Pos, width: p.Width})
	}
	return cuts
}

func cutsOfReading(x *inspect.Reading) (cuts []cut) {
	for _, p := range x.Pieces() {
		cuts = append(cuts, cut{field: p.Field, pos: p.Pos, width: p.Width})
	}
	if !x.HasParts {
		return cuts
	}
	// A field in pieces shows its value at the first piece.
	for key, value := range map[string]string{"time": shortTime(x), "node": number(x.Node), "seq": number(x.Seq)} {
		for i := range cuts {
			if cuts[i].field == key {
				cuts[i].value = value
				break
			}
		}
	}
	return cuts
}

// newRuler draws consecutive cuts from the top bit down. id is nil, or the
// bytes of the ID.
func newRuler(bits int, cuts []cut, id []byte) ruler {
	r := ruler{Bits: bits, Digits: id != nil}
	var words []string
	for hi := bits - 1; hi >= 0; hi -= chunkBits {
		r.Chunks = append(r.Chunks, chunk{Hi: hi, Lo: max(0, hi-chunkBits+1)})
	}
	for _, c := range cuts {
		words = append(words, fmt.Sprintf("%s %s", plural(uint64(c.width), "bit"), fieldName(c.field)))
		var segs []*seg
		var at []int
		for top := c.pos + c.width - 1; top >= c.pos; {
			i := (bits - 1 - top) / chunkBits
			low := max(c.pos, r.Chunks[i].Lo)
			s := seg{Field: c.field, Span: top - low + 1, Begin: top == c.pos+c.width-1, End: low == c.pos, Digits: digits(id, top, low)}
			r.Chunks[i].Segs = append(r.Chunks[i].Segs, s)
			at = append(at, i)
			top = low - 1
		}
		for _, i := range at {
			segs = append(segs, &r.Chunks[i].Segs[len(r.Chunks[i].Segs)-1])
		}
		// Place the name where the field first has room for it.
		var at0 *seg
		for _, s := range segs {
			if at0 == nil || at0.Span < roomy && s.Span > at0.Span {
				at0 = s
			}
		}
		if at0 != nil && at0.Span >= 3 && c.field != "zero" {
			at0.Label, at0.Value = shortName(c.field), c.value
			if at0.Span >= roomy {
				at0.Label = fieldName(c.field)
			}
			if at0.Span >= 6 {
				at0.Width = plural(uint64(c.width), "bit")
			}
			if len(c.value) > 2*at0.Span && c.width < 24 {
				at0.Value = ""
			}
		}
	}
	r.Label = fmt.Sprintf("%d bits, the highest first: %s", bits, strings.Join(words, ", "))
	return r
}

// shortTime formats a reading's time to fit beneath the bits.
func shortTime(x *inspect.Reading) string {
	if x.Time.Year() > 9999 || x.Time.Year() < 1 {
		return utc(x.Time)
	}
	return x.Time.UTC().Format("2006-01-02 15:04:05.000")
}

// digits returns the bits from top to low.
func digits(id []byte, top, low int) string {
	var b strings.Builder
	for bit := top; bit >= low; bit-- {
		at := len(id) - 1 - bit/8
		switch {
		case id == nil:
			b.WriteByte('.')
		case at >= 0 && id[at]>>(bit%8)&1 == 1:
			b.WriteByte('1')
		default:
			b.WriteByte('0')
		}
	}
	return b.String()
}

// fieldName returns the name of a field for people.
func fieldName(field string) string {
	switch field {
	case "seq":
		return "sequence"
	case "const":
		return "fixed"
	case "rand":
		return "random"
	case "zero":
		return "unused"
	}
	return field
}

func shortName(field string) string {
	switch field {
	case "const":
		return "fix"
	case "rand":
		return "rnd"
	}
	return field
}

// orderOf returns the fields in the order of explanation: from the top bit
// down, and those without a meaning last.
func orderOf(cuts []cut) (keys []string) {
	for _, last := range []bool{false, true} {
		for _, c := range cuts {
			if (c.field == "const" || c.field == "zero") == last && !slices.Contains(keys, c.field) {
				keys = append(keys, c.field)
			}
		}
	}
	return keys
}

// A field is a field of an ID, explained.
type field struct {
	Key    string // as in firn.Piece
	Name   string
	Bits   string   // how many bits, and which
	Value  string   // in this ID; may be empty
	Detail []string // its meaning, in sentences
}

// bitsOf describes how many bits a field has, and where.
func bitsOf(cuts []cut, key string) string {
	n := 0
	var where []string
	for _, c := range cuts {
		if c.field != key {
			continue
		}
		n += c.width
		if c.width == 1 {
			where = append(where, fmt.Sprint(c.pos))
		} else {
			where = append(where, fmt.Sprintf("%d–%d", c.pos+c.width-1, c.pos))
		}
	}
	if n == 0 {
		return ""
	}
	word := "bits "
	if n == 1 {
		word = "bit "
	}
	return plural(uint64(n), "bit") + ": " + word + strings.Join(where, ", ")
}
