package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
)

// Options say what is known of an ID. The zero Options know nothing. They are
// plain values; Read does not change them.
type Options struct {
	// Layout is the ID's layout; with the zero Layout all presets are tried.
	Layout firn.Layout

	// From is how the text is written; auto tries all encodings.
	From Encoding

	// Now is the time by which readings are judged. The zero time means
	// time.Now.
	Now time.Time
}

// A Result is all that an ID may be.
type Result struct {
	Text     string
	Readings []Reading // the likeliest first; at least one
}

// A Reading is one way to read an ID.
type Reading struct {
	// Name is the layout's text, from which firn.ParseLayout makes the layout
	// again; or uuidv1, uuidv4 and so on for UUIDs that are no layout.
	Name   string
	Layout firn.Layout // the zero Layout where Name is not the text of one

	Encoding Encoding // in which the text was read
	Bytes    []byte   // the ID, big-endian: 8, 12, 16 or 20

	HasParts  bool // whether the ID holds a time, a node and a sequence
	Time      time.Time
	Node      uint64
	NodeParts []firn.NodePart // the pieces of Node that the format has names for
	Seq       uint64
	Pieces    []Piece // every bit of the ID, from the top down

	Score     float64  // the share of this reading among all that were tried, 0 to 1
	Plausible bool     // the time lies in the years that IDs are from
	For       []string // what speaks for this reading, in plain words
	Against   []string // what speaks against it

	weight float64 // logarithm, base 2, of how probable such a text is
}

// A Piece is a run of bits of an ID and its value there.
type Piece struct {
	Field string // as firn.Piece has it
	Pos   int    // where its lowest bit lies in the ID
	Width int    // in bits
	Value uint64 // the lowest 64 bits, where Width is more
}

// Bits is the size of the ID.
func (r *Reading) Bits() int { return 8 * len(r.Bytes) }

// ID returns an ID of 64 bits, and false for one of another size.
func (r *Reading) ID() (firn.ID, bool) {
	if len(r.Bytes) != 8 {
		return 0, false
	}
	id, err := firn.Raw.Parse(string(r.Bytes))
	return id, err == nil
}

// ID128 returns an ID of 128 bits, and false for one of another size.
func (r *Reading) ID128() (firn.ID128, bool) {
	if len(r.Bytes) != 16 {
		return firn.ID128{}, false
	}
	return firn.ID128(r.Bytes), true
}

// Dec is the ID as a decimal number.
func (r *Reading) Dec() string { return new(big.Int).SetBytes(r.Bytes).String() }

// Hex is the ID as hexadecimal digits, two for each byte, without 0x.
func (r *Reading) Hex() string { return fmt.Sprintf("%x", r.Bytes) }

// An Error says that a text cannot be read as an ID.
type Error struct {
	Text   string
	Reason string
	Tried  []string // the encodings
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s (tried %s)", Quote(e.Text), e.Reason, strings.Join(e.Tried, ", "))
}

// Read reads an ID in all ways that o leaves open. The error says why there is
// none: what is wrong with the text in the encoding that o names, an *Error
// with the encodings that were tried where it names none, or which bits do not
// fit the layout. It may be called by many goroutines at once.
func Read(text string, o Options) (Result, error) {
	now := o.Now
	if now.IsZero() {
		now = time.Now()
	}
	size := 0
	if !o.Layout.IsZero() {
		size = o.Layout.Bits()
	}

	var numbers []*number
	var tried []string
	if o.From.IsAuto() {
		if numbers, tried = guess(text, size); len(numbers) == 0 {
			return Result{}, notRead(text, size, tried)
		}
	} else {
		n, err := readAs(o.From, text, size)
		if err != nil {
			return Result{}, err
		}
		if size != 0 && n.size != size {
			return Result{}, fmt.Errorf("%s is an ID of %d bits: those of layout %s have %d", Quote(text), n.size, o.Layout, size)
		}
		numbers = []*number{n}
	}

	var readings []Reading
	var refused error
	for _, n := range numbers {
		layouts := []firn.Layout{o.Layout}
		if size == 0 {
			layouts = layoutsOf(n)
			if r, ok := readUUID(n, now); ok {
				readings = append(readings, r)
			}
		}
		for _, l := range layouts {
			r, err := readLayout(l, n, now)
			if err != nil {
				refused = cmp.Or(refused, err)
				continue
			}
			if size == 0 && n.loose && !r.Plausible {
				continue
			}
			readings = append(readings, r)
		}
	}
	if len(readings) == 0 {
		if size != 0 {
			return Result{}, refused
		}
		return Result{}, &Error{text, "could be an ID only of a time that no ID is from", tried}
	}
	rank(text, readings, size != 0)
	return Result{text, readings}, nil
}

// notRead says why text fits no encoding.
func notRead(text string, size int, tried []string) error {
	reason := "is no ID"
	if size != 0 {
		reason = fmt.Sprintf("is no ID of %d bits", size)
	}
	switch {
	case text == "":
		return errors.New("the text is empty")
	case len(text) > 1 && text[0] == '-' && isDigits(text[1:]):
		reason += ": it has a sign"
		var v big.Int
		if v.SetString(text, 10); v.IsInt64() {
			reason += fmt.Sprintf(", and as an unsigned number it is %d", uint64(v.Int64()))
		}
	case isFloat(text):
		reason += ": it was written as a floating-point number, which loses the last digits of an ID; export it as text"
	case isDigits(text):
		reason += fmt.Sprintf(": as a decimal number it needs more than %d bits", cmp.Or(size, 128))
	case strings.Trim(text, "0123456789abcdefABCDEF") == "":
		reason += fmt.Sprintf(": hexadecimal without 0x has 16, 24, 32 or 40 digits, and this has %d", len(text))
	default:
		for i, r := range text {
			if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-') {
				continue
			}
			reason += fmt.Sprintf(": %q at offset %d is in no encoding", r, i)
			return &Error{text, reason, tried}
		}
		reason += fmt.Sprintf(": its %d characters fit no encoding of one", len(text))
	}
	return &Error{text, reason, tried}
}

// isFloat reports whether a text is a number as spreadsheets and data frames
// write large ones: 1.2E+18 or 1200000000000000000.0.
func isFloat(text string) bool {
	if !strings.ContainsAny(text, ".") && !strings.ContainsAny(text, "+") || strings.Trim(text, "0123456789.,eE+") != "" {
		return false
	}
	_, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	return err == nil
}

// presets are the named layouts. Parsing them takes longer than reading an ID by
// all of them.
var presets = sync.OnceValue(func() (layouts []firn.Layout) {
	for p := range firn.Presets() {
		layouts = append(layouts, p.Layout)
	}
	return layouts
})

// layoutsOf lists the layouts that a number of this size may have.
func layoutsOf(n *number) []firn.Layout {
	var layouts []firn.Layout
	for _, l := range presets() {
		switch name := l.Preset(); {
		case l.Bits() != n.size:
		case name == "lable":
			layouts = append(layouts, lableOf(n))
		case name == "xid" && n.encoding.kind != xid, name == "objectid" && n.encoding.kind != longHex:
			// The two have the same bits, and their texts tell them apart.
		default:
			layouts = append(layouts, l)
		}
	}
	return layouts
}

// lables are Lable's layouts by mode and cluster.
var lables = sync.OnceValue(func() (layouts [2][16]firn.Layout) {
	for mode, name := range []string{"spread", "time-sequential"} {
		for cluster := range 16 {
			layouts[mode][cluster] = firn.MustParseLayout(fmt.Sprintf("lable,mode=%s,cluster=%d", name, cluster))
		}
	}
	return layouts
})

// lableOf is Lable's layout with the mode and the cluster that the ID says
// itself.
func lableOf(n *number) firn.Layout { return lables()[n.bytes[6]>>4&1][n.bytes[7]&15] }

// readLayout reads a number by a layout.
func readLayout(l firn.Layout, n *number, now time.Time) (Reading, error) {
	var parts firn.Parts
	var err error
	switch n.size {
	case 64:
		parts, err = l.Decompose(n.id64())
	case 128:
		parts, err = l.Decompose128(n.id128())
	default:
		parts, err = l.DecomposeBytes(n.raw())
	}
	if err != nil {
		return Reading{}, err
	}
	r := Reading{
		Name: l.String(), Layout: l, Encoding: n.encoding, Bytes: n.raw(),
		HasParts: true, Time: parts.Time, Node: parts.Node, NodeParts: l.NodeParts(parts.Node), Seq: parts.Seq,
	}
	for _, p := range l.Pieces() {
		r.Pieces = append(r.Pieces, Piece{p.Field, p.Pos, p.Width, p.Value(r.Bytes)})
	}
	j := judge{now: now, n: n, r: &r}
	j.layout(l)
	return r, nil
}

// rank sorts the readings by their weight, and turns the weights into shares.
// Where the layout is known, digits are decimal (or hexadecimal, see isPadded),
// however likely another reading looks: a stream of IDs must not change its
// encoding midway.
func rank(text string, readings []Reading, known bool) {
	first := firn.Decimal
	if isPadded(text) {
		first = firn.Hex
	}
	isFirst := func(r Reading) int {
		if r.Encoding == As(first) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(readings, func(a, b Reading) int {
		if known {
			if c := cmp.Compare(isFirst(b), isFirst(a)); c != 0 {
				return c
			}
		}
		return cmp.Compare(b.weight, a.weight)
	})
	top := readings[0].weight
	for _, r := range readings {
		top = max(top, r.weight)
	}
	sum := 0.0
	for _, r := range readings {
		sum += math.Exp2(r.weight - top)
	}
	for i := range readings {
		readings[i].Score = math.Exp2(readings[i].weight-top) / sum
	}
}
