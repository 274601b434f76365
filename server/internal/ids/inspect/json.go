package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// maxExact is the largest integer up to which every JSON parser is exact.
// Larger numbers are written as strings.
const maxExact = 1 << 53

// AppendNumber appends v as JSON: a number up to 2^53, otherwise a string of
// digits.
func AppendNumber(b []byte, v uint64) []byte {
	if v <= maxExact {
		return strconv.AppendUint(b, v, 10)
	}
	b = append(b, '"')
	return append(strconv.AppendUint(b, v, 10), '"')
}

// ParseNumber parses a decimal integer of 64 bits.
func ParseNumber(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("it exceeds 64 bits")
	case err != nil:
		return 0, errors.New("it must be an integer of 0 or more")
	}
	return n, nil
}

// AppendMillis appends t in Unix milliseconds as JSON, like AppendNumber, also
// if it exceeds int64. It rounds down.
func AppendMillis(b []byte, t time.Time) []byte {
	sec, ms := t.Unix(), uint64(t.Nanosecond()/1e6)
	if sec < 0 {
		// -1 s and 1 ms are -999 ms. On this side, the years of layouts end long
		// before int64 milliseconds do.
		v := sec*1000 + int64(ms)
		if v < -maxExact {
			b = append(b, '"')
			return append(strconv.AppendInt(b, v, 10), '"')
		}
		return strconv.AppendInt(b, v, 10)
	}
	hi, lo := bits.Mul64(uint64(sec), 1000)
	lo, carry := bits.Add64(lo, ms, 0)
	if hi += carry; hi == 0 {
		return AppendNumber(b, lo)
	}
	b = append(b, '"')
	b = firn.Decimal.Append128(b, firn.ID128FromUint64s(hi, lo))
	return append(b, '"')
}

// latestSecond is later than the last tick of any layout.
const latestSecond = 1 << 56

// ParseMillis parses Unix milliseconds exactly, even beyond int64: Boundary's
// time has 64 bits.
func ParseMillis(s string) (time.Time, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil && s[0] != '+' {
		return time.UnixMilli(ms).UTC(), nil
	}
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return time.Time{}, errors.New("it is not an integer number of Unix milliseconds")
	}
	wide, err := firn.Decimal.Parse128(s)
	hi, lo := wide.Uint64s()
	if err == nil && hi < 1000 {
		if sec, ms := bits.Div64(hi, lo, 1000); sec < latestSecond {
			return time.Unix(int64(sec), int64(ms)*1e6).UTC(), nil
		}
	}
	return time.Time{}, errors.New("it is later than the last time of any layout")
}

// appendTime appends t as RFC 3339, which covers years up to 9999; other times
// are null.
func appendTime(b []byte, t time.Time, unit time.Duration) []byte {
	if y := t.Year(); y < 0 || y > 9999 {
		return append(b, "null"...)
	}
	return AppendString(b, Stamp(t, unit))
}

// AppendJSON appends the result as a JSON object: the likeliest reading, and
// the others as an array under "others".
//
//	layout           the layout
//	time, time_ms    RFC 3339 in UTC (null after the year 9999), Unix ms
//	node, node_parts the node ID, and its pieces by name if there are any
//	seq              the sequence
//	dec, hex         the ID as strings; hex has two digits for each byte
//	from             the encoding of the text
//	score            0 to 1, the share among all readings, and none of them
//	for, against     reasons, in words
//	likelihood       likely, possible or unlikely
//
// Integers above 2^53 are strings. time, time_ms, node and seq are null for a
// UUID that holds none. The likeliest reading also has:
//
//	known            false if no known layout is likelier than this one
//	note             what the text may be instead of an ID, if known is false
func (r *Result) AppendJSON(b []byte) []byte {
	b = r.Readings[0].appendFields(append(b, '{'))
	b = append(b, `,"others":[`...)
	for i := range r.Readings[1:] {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.Readings[1+i].AppendJSON(b)
	}
	b = r.Readings[0].appendLikelihood(append(b, ']'))
	if !r.asked {
		b = strconv.AppendBool(append(b, `,"known":`...), r.Known())
	}
	if !r.Known() && r.Other != "" {
		b = AppendString(append(b, `,"note":`...), r.Other)
	}
	return append(b, '}')
}

// AppendJSON appends the reading as a JSON object, like Result.AppendJSON
// without the others.
func (r *Reading) AppendJSON(b []byte) []byte {
	return append(r.appendLikelihood(r.appendFields(append(b, '{'))), '}')
}

func (r *Reading) appendLikelihood(b []byte) []byte {
	b = append(append(b, `,"likelihood":"`...), r.Likelihood().String()...)
	return append(b, '"')
}

func (r *Reading) appendFields(b []byte) []byte {
	b = AppendString(append(b, `"layout":`...), r.Name)
	if r.HasParts {
		b = r.appendParts(b)
	} else {
		b = append(b, `,"time":null,"time_ms":null,"node":null,"seq":null`...)
	}
	b = fmt.Appendf(b, `,"dec":"%s","hex":"%s","from":"%s","score":%.6f`, r.Dec(), r.Hex(), r.Encoding, r.Score)
	b = AppendStrings(append(b, `,"for":`...), r.For())
	return AppendStrings(append(b, `,"against":`...), r.Against())
}

// unit returns the length of a tick; a UUID without a layout has that of
// version 1.
func (r *Reading) unit() time.Duration {
	if r.Layout.IsZero() {
		return uuidv6().Unit()
	}
	return r.Layout.Unit()
}

// Stamp returns the time of the reading as text; see the function Stamp.
func (r *Reading) Stamp() string { return Stamp(r.Time, r.unit()) }

// AppendParts appends the reading by a known layout as a JSON object with the
// keys layout, time, time_ms, node, node_parts, seq, dec and hex of
// Result.AppendJSON.
func (r *Reading) AppendParts(b []byte) []byte {
	b = AppendString(append(b, `{"layout":`...), r.Name)
	return fmt.Appendf(r.appendParts(b), `,"dec":"%s","hex":"%s"}`, r.Dec(), r.Hex())
}

func (r *Reading) appendParts(b []byte) []byte {
	b = appendTime(append(b, `,"time":`...), r.Time, r.unit())
	b = AppendMillis(append(b, `,"time_ms":`...), r.Time)
	b = AppendNumber(append(b, `,"node":`...), r.Node)
	for i, p := range r.NodeParts() {
		if i == 0 {
			b = append(b, `,"node_parts":{"`...)
		} else {
			b = append(b, `,"`...)
		}
		b = AppendNumber(append(append(b, p.Name...), `":`...), p.Value)
	}
	if len(r.NodeParts()) > 0 {
		b = append(b, '}')
	}
	return AppendNumber(append(b, `,"seq":`...), r.Seq)
}

// AppendString appends s as a JSON string.
func AppendString(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string cannot fail
	return append(b, text...)
}

// AppendStrings appends a JSON array of strings.
func AppendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, s)
	}
	return append(b, ']')
}
