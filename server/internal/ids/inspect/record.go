package inspect

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Record describes how to compose an ID: the text of each value, or "" if the
// key is missing or null.
type Record struct {
	Layout, TimeMS, Node, Seq string
}

// ParseRecord parses a JSON object with the keys layout, time_ms, node and seq.
// Numbers keep their digits and never pass through a float64. A string stands
// for the number in it. Unknown and repeated keys, fractions and exponents are
// errors.
func ParseRecord(line string) (Record, error) {
	var r Record
	s := scanner{text: line}
	if !s.take('{') {
		return r, s.fault("expected a JSON object")
	}
	var seen [4]bool
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return r, s.fault("expected a comma or }")
		}
		key, err := s.string()
		if err != nil {
			return r, err
		}
		if !s.take(':') {
			return r, s.fault("expected a colon")
		}
		var to *string
		i := 0
		switch key {
		case "layout":
			to = &r.Layout
		case "time_ms":
			to, i = &r.TimeMS, 1
		case "node":
			to, i = &r.Node, 2
		case "seq":
			to, i = &r.Seq, 3
		default:
			return r, fmt.Errorf("unknown key %s: the keys are layout, time_ms, node and seq", Quote(key))
		}
		if seen[i] {
			return r, fmt.Errorf("the key %s is given twice", key)
		}
		seen[i] = true
		if *to, err = s.value(key, key != "layout"); err != nil {
			return r, err
		}
	}
	if s.space(); s.pos < len(line) {
		return r, s.fault("unexpected text after the object")
	}
	return r, nil
}

// A scanner reads JSON from left to right.
type scanner struct {
	text string
	pos  int
}

func (s *scanner) fault(what string) error {
	return fmt.Errorf("%s at offset %d", what, min(s.pos, len(s.text)))
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// take skips spaces and c, if c is next.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// string reads a JSON string.
func (s *scanner) string() (string, error) {
	if !s.take('"') {
		return "", s.fault("expected a string")
	}
	begin := s.pos
	for i := begin; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.pos = i + 1
			return s.text[begin:i], nil
		case c == '\\' || c < ' ' || c >= 0x80:
			return s.escaped(begin - 1)
		}
	}
	return "", s.fault("unterminated string")
}

// escaped reads a string with escapes or characters outside ASCII, from its
// opening quote.
func (s *scanner) escaped(begin int) (string, error) {
	d := json.NewDecoder(strings.NewReader(s.text[begin:]))
	var v string
	if err := d.Decode(&v); err != nil {
		s.pos = begin
		return "", s.fault("invalid string")
	}
	s.pos = begin + int(d.InputOffset())
	return v, nil
}

// value reads a string, or an integer if number is set, as text. null is "".
func (s *scanner) value(key string, number bool) (string, error) {
	s.space()
	rest := s.text[s.pos:]
	switch {
	case rest == "":
		return "", s.fault("expected a value")
	case rest[0] == '"':
		v, err := s.string()
		if err == nil && v == "" {
			err = fmt.Errorf("%s is empty", key)
		}
		return v, err
	case strings.HasPrefix(rest, "null"):
		s.pos += len("null")
		return "", nil
	case !number:
		return "", fmt.Errorf("%s must be a string", key)
	}
	digits := 0
	if rest[0] == '-' {
		digits++
	}
	end := digits
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	switch {
	case end == digits:
		return "", fmt.Errorf("%s must be a number or a string", key)
	case rest[digits] == '0' && end > digits+1:
		return "", fmt.Errorf("%s has leading zeros, which JSON does not allow", key)
	case end < len(rest) && (rest[end] == '.' || rest[end] == 'e' || rest[end] == 'E'):
		return "", fmt.Errorf("%s must be an integer with all its digits", key)
	}
	s.pos += end
	return rest[:end], nil
}
