package firn

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseLayout parses the text of a layout: PRESET[,KEY=VALUE…] or
// bits=FIELD:WIDTH.FIELD:WIDTH…[,KEY=VALUE…]. Examples:
//
//	default
//	hazelcast,node-bits=10,seq-bits=12,epoch=2020-01-01T00:00:00Z
//	lable,mode=time-sequential,cluster=3
//	bits=time:41.node:10.seq:12,unit=1ms,epoch=1767225600000
//
// Presets lists the names and their keys. Every layout has the key epoch, in
// Unix milliseconds or RFC 3339. A layout defined by bits also has the key
// unit, the length of a tick as a Go duration. Its defaults are a unit of 1ms
// and the epoch 1970-01-01. Its fields are listed from the topmost bit down:
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
// The error is a *ParseError whose Reason lists all mistakes.
func ParseLayout(s string) (Layout, error) {
	l, faults := parseLayout(s)
	if len(faults) > 0 {
		return Layout{}, &ParseError{What: "layout", Text: s, Pos: -1, Reason: joinFaults(faults)}
	}
	return l, nil
}

// joinFaults returns an error text with all faults on one line.
func joinFaults(faults []error) string {
	return strings.ReplaceAll(errors.Join(faults...).Error(), "\n", "; ")
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
	if p == &noPreset {
		return fmt.Sprintf("bits=%s,unit=%v,epoch=%s", l.Fields(), l.unit, l.epochText())
	}
	var b strings.Builder
	b.WriteString(p.name)
	for _, k := range p.keys {
		if v := k.show(&l); v != k.byDefault {
			b.WriteString("," + k.name + "=" + v)
		}
	}
	if l.epoch != p.epoch {
		b.WriteString(",epoch=" + l.epochText())
	}
	return b.String()
}

// MarshalText returns the text of String. It is an error if l is the zero
// Layout.
func (l Layout) MarshalText() ([]byte, error) {
	if err := l.check(); err != nil {
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

// Fields returns the layout's bits in the form that ParseLayout accepts after
// bits=, whether or not the layout has a name.
func (l Layout) Fields() string {
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
		if p.field == fieldConst {
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

func parseLayout(s string) (l Layout, faults []error) {
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if s == "" {
		fault("it is empty: use %q, another preset (%s), or bits=…", "default", presetNames())
		return l, faults
	}
	parts := strings.Split(s, ",")
	head, given := parts[0], make(args)
	for _, part := range parts[1:] {
		key, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || key == "":
			fault("%s should be key=value", quoteShort(part))
		case given[key] != "":
			fault("%s is given twice", quoteShort(key))
		case value == "":
			fault("%s has no value", quoteShort(key))
		default:
			given[key] = value
		}
	}

	var fields string
	if own, ok := strings.CutPrefix(head, "bits="); ok {
		fields = own
		l.unit = time.Millisecond
		if text, ok := given["unit"]; ok {
			unit, err := time.ParseDuration(text)
			if err != nil || unit <= 0 || unit > maxUnit {
				fault("unit is %s, not a duration of more than 0 and at most %v, such as 1ms", quoteShort(text), maxUnit)
			}
			if err == nil && unit > 0 {
				l.unit = unit
			}
		}
		faults = append(faults, unknownKeys(given, "a layout defined by bits", "unit", "epoch")...)
	} else {
		i := slices.IndexFunc(presets[:], func(p preset) bool { return p.name == head })
		if i < 0 {
			fault("unknown preset %s: use one of %s, or bits=…", quoteShort(head), presetNames())
			return l, faults
		}
		p := &presets[i]
		l.preset, l.size, l.epoch, l.unit = uint8(i+1), p.size, p.epoch, cmp.Or(p.unit, time.Millisecond)
		known := []string{"epoch"}
		settings := make(args)
		for _, k := range p.keys {
			known = append(known, k.name)
			settings[k.name] = k.byDefault
			if v, ok := given[k.name]; ok {
				settings[k.name] = v
			}
		}
		faults = append(faults, unknownKeys(given, p.name, known...)...)
		var err error
		if fields, err = p.bits(settings); err != nil {
			faults = append(faults, err)
		}
	}
	if text, ok := given["epoch"]; ok {
		epoch, err := parseEpoch(text)
		if err != nil {
			faults = append(faults, err)
		}
		l.epoch = epoch
	}
	if len(faults) > 0 && l.preset != 0 {
		return l, faults // reporting the preset's bits as well would not help
	}
	return l, append(faults, l.setPieces(fields)...)
}

func unknownKeys(given args, what string, known ...string) (faults []error) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, key) {
			faults = append(faults, fmt.Errorf("unknown key %s: %s has %s", quoteShort(key), what, strings.Join(known, ", ")))
		}
	}
	return faults
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
func (l *Layout) setPieces(fields string) (faults []error) {
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	var consts [maxPieces]uint64
	total, n := 0, 0
	for part := range strings.SplitSeq(fields, ".") {
		p, value, err := parsePiece(part)
		switch {
		case err != nil:
			faults = append(faults, err)
			continue
		case n == maxPieces:
			fault("there are more than %d fields", maxPieces)
			return faults
		}
		l.pieces[n], consts[n] = p, value
		total += int(p.width)
		n++
	}
	l.n = uint8(n)
	switch {
	case l.size != 0: // set by a preset
	case total > 128:
		fault("the widths add up to %d bits: remove %d to fit 128 (or %d to fit 64)", total, total-128, total-64)
		return faults
	case total > 64:
		l.size = 128
	default:
		l.size = 64
	}

	widths := map[field]int{}
	pos := 0
	for i := n - 1; i >= 0; i-- { // from the lowest bit up
		p := &l.pieces[i]
		p.pos, p.low = uint8(pos), uint8(widths[p.field])
		if p.field == fieldConst {
			p.low = 0
			l.consts = l.consts.or(wide{0, consts[i]}.shl(p.pos))
		}
		widths[p.field] += int(p.width)
		pos += int(p.width)
	}
	for _, f := range []field{fieldTime, fieldNode} {
		if widths[f] > 64 {
			fault("%s has a total of %d bits, more than 64", f, widths[f])
		}
	}
	if w := widths[fieldSeq]; w > maxSeqBits {
		fault("seq has a total of %d bits, more than %d", w, maxSeqBits)
	}
	if widths[fieldTime] == 0 {
		fault("there is no time field: an ID without time has no order")
	}
	if len(faults) > 0 {
		return faults
	}
	l.timeBits, l.nodeBits = uint8(widths[fieldTime]), uint8(widths[fieldNode])
	l.seqBits, l.randBits = uint8(widths[fieldSeq]), uint8(widths[fieldRand])
	if _, err := l.timeOf(mask(l.timeBits)); err != nil {
		fault("%d bits of time in ticks of %v exceed what a time can represent: use fewer bits or a finer unit", l.timeBits, l.unit)
	}
	return faults
}

// maxSeqBits leaves at least one of a generator's 63 bits to the tick.
const maxSeqBits = 62

// parsePiece parses one field of a layout: name:width, or const:width=value.
func parsePiece(s string) (p piece, value uint64, err error) {
	name, width, ok := strings.Cut(s, ":")
	if !ok {
		return p, 0, fmt.Errorf("field %s should be name:width", quoteShort(s))
	}
	name, p.reverse = strings.CutSuffix(name, "~")
	f := slices.Index(fieldNames[:], name)
	if f <= 0 { // the zero field has no name
		return p, 0, fmt.Errorf("unknown field %s: use one of time, time~, node, seq, const, rand", quoteShort(name))
	}
	p.field = field(f)
	most := 64
	if p.field == fieldRand {
		most = 128
	}
	if p.reverse && p.field != fieldTime {
		return p, 0, fmt.Errorf("field %s cannot be reversed; only time can", name)
	}
	width, text, hasValue := strings.Cut(width, "=")
	n, err := strconv.ParseUint(width, 10, 8)
	if err != nil || n > uint64(most) || strconv.FormatUint(n, 10) != width {
		return p, 0, fmt.Errorf("the width of field %s is %s, not a number from 0 to %d", name, quoteShort(width), most)
	}
	p.width = uint8(n)
	if hasValue != (p.field == fieldConst) {
		if hasValue {
			return p, 0, fmt.Errorf("field %s has a value: only const has one", name)
		}
		return p, 0, fmt.Errorf("field const:%s needs a value: const:%s=0", width, width)
	}
	if !hasValue {
		return p, 0, nil
	}
	digits, base := text, 10
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		digits, base = hex, 16
	}
	value, err = strconv.ParseUint(digits, base, 64)
	if err != nil || value > mask(p.width) {
		return p, 0, fmt.Errorf("the value of const:%s is %s, not a number from 0 to %d", width, quoteShort(text), mask(p.width))
	}
	return p, value, nil
}
