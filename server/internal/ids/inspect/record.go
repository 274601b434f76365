package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
func ParseRecord(line string) (r Record, err error) {
	if r, ok := parsePlain(line); ok {
		return r, nil
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return r, errors.New("expected a JSON object")
	}
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return r, jsonError(d, err)
		}
		key, _ := t.(string)
		to := r.field(key)
		if to == nil {
			return r, fmt.Errorf("unknown key %s: the keys are layout, time_ms, node and seq", Quote(key))
		}
		if seen[key] {
			return r, fmt.Errorf("the key %s is given twice", key)
		}
		seen[key] = true
		if t, err = d.Token(); err != nil {
			return r, jsonError(d, err)
		}
		if *to, err = valueText(key, t); err != nil {
			return r, err
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return r, jsonError(d, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return r, fmt.Errorf("unexpected text after the object at offset %d", d.InputOffset())
	}
	return r, nil
}

// parsePlain parses an object without null, escapes, or spaces in odd places,
// as most programs write it. It leaves all others, and all faults, to
// encoding/json, which is slower by far.
func parsePlain(line string) (r Record, ok bool) {
	rest, ok := strings.CutPrefix(line, "{")
	for ok && rest != "}" {
		var key, value string
		if key, rest, ok = cutString(strings.TrimPrefix(rest, " ")); !ok {
			break
		}
		if rest, ok = strings.CutPrefix(rest, ":"); !ok {
			break
		}
		if rest = strings.TrimPrefix(rest, " "); strings.HasPrefix(rest, `"`) {
			value, rest, ok = cutString(rest)
		} else {
			value = rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
			rest = rest[len(value):]
			ok = key != "layout" && (len(value) == 1 || !strings.HasPrefix(value, "0"))
		}
		to := r.field(key)
		if !ok || value == "" || to == nil || *to != "" {
			return r, false
		}
		*to = value
		if rest != "}" {
			rest, ok = strings.CutPrefix(rest, ",")
			ok = ok && rest != "}"
		}
	}
	return r, ok
}

// cutString cuts a string without escapes off a text in JSON.
func cutString(text string) (value, rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, `"`); !ok {
		return "", "", false
	}
	value, rest, ok = strings.Cut(text, `"`)
	return value, rest, ok && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' || r == '\\' })
}

// field returns where the value of a key belongs, or nil.
func (r *Record) field(key string) *string {
	switch key {
	case "layout":
		return &r.Layout
	case "time_ms":
		return &r.TimeMS
	case "node":
		return &r.Node
	case "seq":
		return &r.Seq
	}
	return nil
}

// jsonError says where a line is not JSON.
func jsonError(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the object is not complete")
	}
	return fmt.Errorf("%w at offset %d", err, d.InputOffset())
}

// valueText returns a string, or an integer, as text. null is "".
func valueText(key string, t json.Token) (string, error) {
	switch v := t.(type) {
	case nil:
		return "", nil
	case string:
		if v == "" {
			return "", fmt.Errorf("%s is empty", key)
		}
		return v, nil
	case json.Number:
		if key == "layout" {
			break
		}
		if strings.ContainsAny(v.String(), ".eE") {
			return "", fmt.Errorf("%s must be an integer with all its digits", key)
		}
		return v.String(), nil
	}
	if key == "layout" {
		return "", errors.New("layout must be a string")
	}
	return "", fmt.Errorf("%s must be a number or a string", key)
}
