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
	Label  string // for screen readers
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
	for key, value := range map[string]string{"time": strings.TrimSuffix(utc(x.Time), " UTC"), "node": number(x.Node), "seq": number(x.Seq)} {
		if i := slices.IndexFunc(cuts, func(c cut) bool { return c.field == key }); i >= 0 {
			cuts[i].value = value
		}
	}
	return cuts
}

// newRuler draws consecutive cuts from the top bit down. id is nil, or the
// bytes of the ID.
func newRuler(bits int, cuts []cut, id []byte) ruler {
	var r ruler
	for hi := bits - 1; hi >= 0; hi -= chunkBits {
		r.Chunks = append(r.Chunks, chunk{Hi: hi, Lo: max(0, hi-chunkBits+1)})
	}
	var words []string
	for _, c := range cuts {
		words = append(words, fmt.Sprintf("%s %s", plural(uint64(c.width), "bit"), fieldName(c.field)))
		var segs []seg
		named, first := 0, (bits-c.pos-c.width)/chunkBits
		for top := c.pos + c.width - 1; top >= c.pos; {
			low := max(c.pos, r.Chunks[first+len(segs)].Lo)
			segs = append(segs, seg{
				Field: c.field, Span: top - low + 1, Digits: digits(id, top, low),
				Begin: top == c.pos+c.width-1, End: low == c.pos,
			})
			// The name stands where the field first has room for it.
			if last := len(segs) - 1; segs[named].Span < roomy && segs[last].Span > segs[named].Span {
				named = last
			}
			top = low - 1
		}
		segs[named].name(c)
		for i, s := range segs {
			r.Chunks[first+i].Segs = append(r.Chunks[first+i].Segs, s)
		}
	}
	r.Label = fmt.Sprintf("%d bits, the highest first: %s", bits, strings.Join(words, ", "))
	return r
}

// name writes the name, width and value of a field beneath its bits, as far as
// there is room.
func (s *seg) name(c cut) {
	if s.Span < 3 || c.field == "zero" {
		return
	}
	if s.Label = fieldName(c.field); s.Span < roomy && len(s.Label) > 4 {
		s.Label = c.field
	}
	if s.Span >= 6 {
		s.Width = plural(uint64(c.width), "bit")
	}
	if len(c.value) <= 2*s.Span || c.width >= 24 {
		s.Value = c.value
	}
}

// digits returns the bits from top to low.
func digits(id []byte, top, low int) string {
	if id == nil {
		return strings.Repeat(".", top-low+1)
	}
	var b strings.Builder
	for bit := top; bit >= low; bit-- {
		b.WriteByte('0' + id[len(id)-1-bit/8]>>(bit%8)&1)
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
