package inspect

import (
	"time"

	"github.com/firnid/firn"
)

// A Reader reads IDs of one layout and writes them as JSON, millions per
// second. It must be made by NewReader, and is not safe for concurrent use.
type Reader struct {
	o      Options
	start  []byte // of every object
	named  bool   // whether the node has pieces with names
	whole  bool   // whether ticks are whole milliseconds
	second int64  // the Unix second of stamp
	stamp  []byte // RFC 3339 without decimals and zone
}

// NewReader makes a Reader for IDs of a layout in the encoding from.
func NewReader(layout firn.Layout, from Encoding) *Reader {
	return &Reader{
		o:     Options{Layout: layout, From: from},
		start: AppendString([]byte(`{"layout":`), layout.String()),
		named: len(layout.NodeParts(0)) > 0,
		whole: layout.Unit()%time.Millisecond == 0,
	}
}

// AppendJSON reads an ID and appends it as a JSON object with the keys layout,
// time, time_ms, node, seq, dec and hex, as in Result.AppendJSON, and
// node_parts. Digits are decimal, as in Read. After an error it returns b
// unchanged.
func (r *Reader) AppendJSON(b []byte, text string) ([]byte, error) {
	size := r.o.Layout.Bits()
	if _, ok := r.o.From.Format(); !ok && !r.o.From.IsAuto() {
		size = 0 // neither 64 nor 128 bits
	}
	switch size {
	case 64:
		id, err := r.parse(text)
		if err != nil {
			break
		}
		p, err := r.o.Layout.Decompose(id)
		if err != nil {
			break
		}
		b = append(r.appendParts(b, p), `,"dec":"`...)
		b = firn.Decimal.Append(b, id)
		b = firn.Hex.Append(append(b, `","hex":"`...), id)
		return append(b, `"}`...), nil
	case 128:
		id, err := r.parse128(text)
		if err != nil {
			break
		}
		p, err := r.o.Layout.Decompose128(id)
		if err != nil {
			break
		}
		b = append(r.appendParts(b, p), `,"dec":"`...)
		b = firn.Decimal.Append128(b, id)
		b = firn.Hex.Append128(append(b, `","hex":"`...), id)
		return append(b, `"}`...), nil
	}
	// Another encoding or size, or an error to explain.
	result, err := Read(text, r.o)
	if err != nil {
		return b, err
	}
	best := &result.Readings[0]
	b = append(r.appendParts(b, firn.Parts{Time: best.Time, Node: best.Node, Seq: best.Seq}), `,"dec":"`...)
	b = append(append(b, best.Dec()...), `","hex":"`...)
	return append(append(b, best.Hex()...), `"}`...), nil
}

func (r *Reader) parse(text string) (firn.ID, error) {
	if f, ok := r.o.From.Format(); ok {
		return f.Parse(text)
	}
	if len(text) == 16 && !isDecimal(text) {
		return firn.Hex.Parse(text)
	}
	return firn.ParseID(text)
}

func (r *Reader) parse128(text string) (firn.ID128, error) {
	if f, ok := r.o.From.Format(); ok {
		return f.Parse128(text)
	}
	if len(text) == 32 && !isDecimal(text) {
		return firn.Hex.Parse128(text)
	}
	return firn.ParseID128(text)
}

// isDecimal reports whether a text as long as a hexadecimal one is decimal.
func isDecimal(text string) bool { return !isPadded(text) && isDigits(text) }

// appendParts appends the object up to the sequence.
func (r *Reader) appendParts(b []byte, p firn.Parts) []byte {
	b = append(b, r.start...)
	var parts []firn.NodePart
	if r.named {
		parts = r.o.Layout.NodeParts(p.Node)
	}
	sec := p.Time.Unix()
	if !r.whole || sec < 0 || p.Time.Year() > 9999 {
		return appendParts(b, p.Time, r.o.Layout.Unit(), p.Node, parts, p.Seq)
	}
	// Formatting the date takes the longest, and consecutive IDs often share their
	// second.
	if r.stamp == nil || sec != r.second {
		r.second = sec
		r.stamp = p.Time.AppendFormat(r.stamp[:0], "2006-01-02T15:04:05")
	}
	ms := p.Time.Nanosecond() / 1e6
	b = append(append(b, `,"time":"`...), r.stamp...)
	b = append(b, '.', '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10), 'Z', '"')
	b = AppendMillis(append(b, `,"time_ms":`...), p.Time)
	b = AppendNumber(append(b, `,"node":`...), p.Node)
	b = appendNodeParts(b, parts)
	return AppendNumber(append(b, `,"seq":`...), p.Seq)
}
