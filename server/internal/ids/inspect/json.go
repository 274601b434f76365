package inspect

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
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
	if sec := t.Unix(); sec >= 0 && sec < maxExact/1000 {
		return strconv.AppendInt(b, t.UnixMilli(), 10)
	}
	v := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1000))
	v.Add(v, big.NewInt(int64(t.Nanosecond()/1e6)))
	if v.CmpAbs(big.NewInt(maxExact)) <= 0 {
		return v.Append(b, 10)
	}
	return append(v.Append(append(b, '"'), 10), '"')
}

// ParseMillis parses Unix milliseconds exactly, even beyond int64: Boundary's
// time has 64 bits.
func ParseMillis(s string) (time.Time, error) {
	if ms, err := strconv.ParseUint(s, 10, 63); err == nil {
		return time.UnixMilli(int64(ms)).UTC(), nil
	}
	v, ok := new(big.Int).SetString(s, 10)
	switch {
	case !ok || s[0] == '+' || v.Sign() < 0 && !v.IsInt64():
		return time.Time{}, errors.New("it is not an integer number of Unix milliseconds")
	case v.BitLen() > 66: // 1000 times 2^56 s
		return time.Time{}, errors.New("it is later than the last time of any layout")
	}
	sec, ms := v.DivMod(v, big.NewInt(1000), new(big.Int))
	return time.Unix(sec.Int64(), ms.Int64()*1e6).UTC(), nil
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
	b = fmt.Appendf(r.appendTexts(b), `,"from":"%s","score":%.6f`, r.Encoding, r.Score)
	reasons := r.reasons()
	b = AppendStrings(append(b, `,"for":`...), reasons.pros)
	return AppendStrings(append(b, `,"against":`...), reasons.cons)
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
	return append(r.appendTexts(r.appendParts(b)), '}')
}

func (r *Reading) appendTexts(b []byte) []byte {
	b = append(append(b, `,"dec":"`...), r.Dec()...)
	b = hex.AppendEncode(append(b, `","hex":"`...), r.Bytes)
	return append(b, '"')
}

func (r *Reading) appendParts(b []byte) []byte {
	b = appendTime(append(b, `,"time":`...), r.Time, r.unit())
	b = AppendMillis(append(b, `,"time_ms":`...), r.Time)
	b = AppendNumber(append(b, `,"node":`...), r.Node)
	sep := `,"node_parts":{`
	for _, p := range r.NodeParts() {
		b = AppendNumber(fmt.Appendf(b, "%s%q:", sep, p.Name), p.Value)
		sep = ","
	}
	if sep == "," {
		b = append(b, '}')
	}
	return AppendNumber(append(b, `,"seq":`...), r.Seq)
}

// AppendString appends s as a JSON string.
func AppendString(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r) }) {
		return append(append(append(b, '"'), s...), '"')
	}
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
