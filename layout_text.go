package firn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/internal/short"
)

// ParseLayout parses the text of a layout: PRESET[,KEY=VALUE…] or
// bits=FIELD:WIDTH.FIELD:WIDTH…[,KEY=VALUE…]. Examples:
//
//	default
//	hazelcast,node-bits=10,seq-bits=12,epoch=2020-01-01T00:00:00Z
//	lable,mode=time-sequential,cluster=3
//	bits=time:41.node:10.seq:12,unit=1ms,epoch=1767225600000
//
// Presets lists the names and their keys. Every layout has the keys epoch, in
// Unix milliseconds or RFC 3339, and even, a number of bits. A layout defined
// by bits also has the key unit, the length of a tick as a Go duration. Its
// defaults are a unit of 1ms, the epoch 1970-01-01 and even=0. Its fields are
// listed from the topmost bit down:
//
//	time:W     W bits of the time in ticks; time~:W has them in reversed order
//	node:W     W bits of the node ID
//	seq:W      W bits of the sequence
//	const:W=V  W bits that are always V, decimal or 0x hex
//	rand:W     W random bits
//
// The fields time, node and seq may be given in several pieces, the highest
// bits first. Widths that add up to 64 bits or less make a 64-bit ID, and up to
// 128 bits a 128-bit ID. Unused bits are zero, at the top.
//
// With even=K, the K lowest bits of IDs are evenly distributed even if few IDs
// are made: the first IDs of a tick begin at a random sequence number below
// 2^K, and not at 0, unless the tick would then be too short for the IDs of the
// call. The numbers below are skipped. With even=0, a generator that makes an
// ID now and then makes only those with the sequence number 0: if the sequence
// is in the lowest bits, multiples of 2^SeqBits. Those of the layout default
// fill one of 16 shards, and a float64 holds them exactly, so software that
// rounds IDs goes unnoticed until the system is busy.
//
// The error is a *ParseError.
func ParseLayout(s string) (Layout, error) {
	l, err := parseLayout(s)
	if err != nil {
		return Layout{}, &ParseError{What: "layout", Text: short.Text(s), Pos: -1, Reason: err.Error()}
	}
	return l, nil
}

// MustParseLayout is like ParseLayout but panics on error. Use it for constant
// texts.
func MustParseLayout(s string) Layout {
	l, err := ParseLayout(s)
	if err != nil {
		panic(err)
	}
	return l
}

// String returns the layout's text: the preset and the keys that differ from
// its defaults. ParseLayout returns the same layout for it.
func (l Layout) String() string {
	if l.size == 0 {
		return "invalid"
	}
	p := l.presetOf()
	var b strings.Builder
	if p == &noPreset {
		fmt.Fprintf(&b, "bits=%s,unit=%v,epoch=%s", l.Definition(), l.unit, l.epochText())
	} else {
		b.WriteString(p.name)
		for _, k := range p.keys {
			if v := k.show(&l); v != k.Default {
				b.WriteString("," + k.Name + "=" + v)
			}
		}
		if l.epoch != p.epoch {
			b.WriteString(",epoch=" + l.epochText())
		}
	}
	if l.even != l.defaultEven() {
		fmt.Fprintf(&b, ",even=%d", l.even)
	}
	return b.String()
}

// MarshalText returns the text of String. It is an error if l is the zero
// Layout.
func (l Layout) MarshalText() ([]byte, error) {
	if err := l.checkValid(); err != nil {
		return nil, err
	}
	return []byte(l.String()), nil
}

// UnmarshalText sets l to the layout that ParseLayout returns. On error, l is
// unchanged.
func (l *Layout) UnmarshalText(text []byte) error {
	v, err := ParseLayout(string(text))
	if err == nil {
		*l = v
	}
	return err
}

// Definition returns the layout's definition by bits, whether or not the layout
// has a name. ParseLayout accepts it after bits=, unless the layout is ReadOnly:
// after bits=, IDs have 64 or 128 bits.
func (l Layout) Definition() string {
	var b strings.Builder
	for i, p := range l.pieces[:l.n] {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p.field.String())
		if p.reverse {
			b.WriteByte('~')
		}
		fmt.Fprintf(&b, ":%d", p.width)
		if p.field == FieldConst {
			fmt.Fprintf(&b, "=%d", l.consts.shr(p.pos).lo&mask(p.width))
		}
	}
	return b.String()
}

func (l *Layout) epochText() string {
	if l.epoch%1000 == 0 {
		return l.Epoch().Format(time.RFC3339)
	}
	return strconv.FormatInt(l.epoch, 10)
}

func parseLayout(s string) (l Layout, err error) {
	parts := strings.Split(s, ",")
	p := &noPreset
	if !strings.HasPrefix(s, "bits=") {
		i := slices.IndexFunc(presets[:], func(p preset) bool { return p.name == parts[0] })
		if i < 0 {
			return l, fmt.Errorf("unknown preset %s: use one of %s, or bits=…", quoteShort(parts[0]), presetNames())
		}
		p, parts, l.preset = &presets[i], parts[1:], uint8(i+1)
	}
	l.size, l.epoch, l.unit = p.size, p.epoch, cmp.Or(p.unit, time.Millisecond)
	given, err := p.parseArgs(parts)
	if err != nil {
		return l, err
	}
	if text, ok := given["unit"]; ok {
		if l.unit, err = time.ParseDuration(text); err != nil || l.unit <= 0 || l.unit > maxUnit {
			return l, fmt.Errorf("unit is %s, not a duration of more than 0 and at most %v, such as 1ms",
				quoteShort(text), maxUnit)
		}
	}
	if text, ok := given["epoch"]; ok {
		if l.epoch, err = parseEpoch(text); err != nil {
			return l, err
		}
	}
	fields, err := p.bits(given)
	if err != nil {
		return l, err
	}
	if err := l.setPieces(fields); err != nil {
		return l, err
	}
	return l, l.setEven(given)
}

// defaultEven returns the default of the key even.
func (l *Layout) defaultEven() uint8 { return min(l.presetOf().even, l.maxEven()) }

// maxEven returns the maximum of the key even: the lowest bits of IDs must be
// those of the sequence, of which 2 bits more must be left for a tick.
func (l *Layout) maxEven() uint8 {
	for _, p := range l.pieces[:l.n] {
		if p.pos == 0 && p.width > 0 && p.field == FieldSeq {
			return min(p.width, max(l.seqBits, 2)-2)
		}
	}
	return 0
}

// setEven sets how many low bits are even.
func (l *Layout) setEven(given args) error {
	l.even = l.defaultEven()
	if _, ok := given["even"]; !ok {
		return nil
	}
	n, err := given.number("even", 0, uint64(l.maxEven()))
	if err != nil && l.maxEven() == 0 {
		return fmt.Errorf("even is %s, but the lowest bits of this layout are not those of a sequence of at least 3 bits",
			quoteShort(given["even"]))
	}
	l.even = uint8(n)
	return err
}

// parseArgs parses the settings of a layout. Those that are not given have
// their defaults, except epoch and even.
func (p *preset) parseArgs(parts []string) (args, error) {
	all, known := make(args), "epoch, even"
	for _, k := range p.keys {
		all[k.Name] = k.Default
		known += ", " + k.Name
	}
	given := make(map[string]bool)
	for _, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		_, ok := all[key]
		switch {
		case key == "" || value == "":
			return nil, fmt.Errorf("%s should be key=value", quoteShort(part))
		case !ok && key != "epoch" && key != "even":
			return nil, fmt.Errorf("unknown key %s: use %s", quoteShort(key), known)
		case given[key]:
			return nil, fmt.Errorf("%s is given twice", quoteShort(key))
		}
		all[key], given[key] = value, true
	}
	return all, nil
}

// maxUnit bounds the length of a tick; with a longer one, IDs would hardly be
// ordered.
const maxUnit = 24 * time.Hour

// parseEpoch parses Unix milliseconds or RFC 3339, in the years 1 to 9999.
func parseEpoch(s string) (int64, error) {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t, terr := time.Parse(time.RFC3339Nano, s)
		if terr != nil {
			return 0, fmt.Errorf("epoch is %s, neither Unix milliseconds nor a time like 2026-01-01T00:00:00Z", quoteShort(s))
		}
		if t.Nanosecond()%1e6 != 0 {
			return 0, fmt.Errorf("epoch is %s, which is not a whole number of milliseconds", quoteShort(s))
		}
		ms = t.UnixMilli()
	}
	if !isEpoch(time.UnixMilli(ms)) {
		return 0, fmt.Errorf("epoch is %s, outside the years 1 to 9999", quoteShort(s))
	}
	return ms, nil
}

// setPieces parses the fields and sets the layout's pieces and widths.
func (l *Layout) setPieces(fields string) error {
	var consts [maxPieces]uint64
	total := 0
	for text := range strings.SplitSeq(fields, ".") {
		if l.n == maxPieces {
			return fmt.Errorf("there are more than %d fields", maxPieces)
		}
		p, value, err := parsePiece(text)
		if err != nil {
			return err
		}
		l.pieces[l.n], consts[l.n] = p, value
		l.n++
		total += int(p.width)
	}
	switch {
	case l.size != 0: // set by a preset
	case total > 128:
		return fmt.Errorf("the widths add up to %d bits: remove %d to fit 128 (or %d to fit 64)", total, total-128, total-64)
	case total > 64:
		l.size = 128
	default:
		l.size = 64
	}

	var widths [FieldRand + 1]uint8
	pos := uint8(0)
	for i := int(l.n) - 1; i >= 0; i-- { // from the lowest bit up
		p := &l.pieces[i]
		p.pos = pos
		if p.field == FieldConst {
			l.consts = l.consts.or(wide{0, consts[i]}.shl(pos))
		} else {
			p.low = widths[p.field]
		}
		widths[p.field] += p.width
		pos += p.width
	}
	for f, most := range map[Field]uint8{FieldTime: 64, FieldNode: 64, FieldSeq: maxSeqBits} {
		if widths[f] > most {
			return fmt.Errorf("%s has a total of %d bits, more than %d", f, widths[f], most)
		}
	}
	l.timeBits, l.nodeBits = widths[FieldTime], widths[FieldNode]
	l.seqBits, l.randBits = widths[FieldSeq], widths[FieldRand]
	if l.timeBits == 0 {
		return errors.New("there is no time field: an ID without time has no order")
	}
	if _, err := l.timeOf(mask(l.timeBits)); err != nil {
		return fmt.Errorf("%d bits of time in ticks of %v exceed what a time can represent: use fewer bits or a finer unit",
			l.timeBits, l.unit)
	}
	return nil
}

// maxSeqBits leaves at least one of a generator's 63 bits to the tick.
const maxSeqBits = 62

// parsePiece parses one field of a layout: name:width, or const:width=value.
func parsePiece(s string) (p piece, value uint64, err error) {
	name, text, _ := strings.Cut(s, ":")
	width, digits, hasValue := strings.Cut(text, "=")
	name, p.reverse = strings.CutSuffix(name, "~")
	p.field = Field(max(0, slices.Index(fieldNames[:], name)))
	most := 64
	switch p.field {
	case FieldZero: // unknown, or zero, which a layout's text leaves out
		return p, 0, fmt.Errorf("unknown field %s: use one of time, time~, node, seq, const, rand", quoteShort(name))
	case FieldRand:
		most = 128
	}
	if p.reverse && p.field != FieldTime {
		return p, 0, fmt.Errorf("field %s cannot be reversed; only time can", name)
	}
	if hasValue != (p.field == FieldConst) {
		return p, 0, fmt.Errorf("field %s should be name:width, or const:width=value", quoteShort(s))
	}
	n, err := strconv.ParseUint(width, 10, 8)
	if err != nil || n > uint64(most) {
		return p, 0, fmt.Errorf("the width of field %s is %s, not a number from 0 to %d", name, quoteShort(width), most)
	}
	p.width = uint8(n)
	if !hasValue {
		return p, 0, nil
	}
	base := 10
	if hex, ok := strings.CutPrefix(digits, "0x"); ok {
		digits, base = hex, 16
	}
	value, err = strconv.ParseUint(digits, base, 64)
	if err != nil || value > mask(p.width) {
		return p, 0, fmt.Errorf("the value of const:%s is %s, not a number from 0 to %d",
			width, quoteShort(digits), mask(p.width))
	}
	return p, value, nil
}
