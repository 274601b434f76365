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

// A value is the text of a value in JSON. A string stands for the number in it.
// Numbers keep their digits and never pass through a float64.
type value string

// UnmarshalJSON implements json.Unmarshaler.
func (v *value) UnmarshalJSON(b []byte) error {
	text := string(b) // the user of the value rejects what is not a number
	switch {
	case text == "null":
		return nil
	case *v != "":
		return errors.New("a key is given twice")
	case text == `""`:
		return errors.New("a value is empty")
	case b[0] == '"':
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	*v = value(text)
	return nil
}

// ParseRecord parses a JSON object with the keys layout, time_ms, node and seq.
// Unknown and repeated keys are errors.
func ParseRecord(line string) (Record, error) {
	var r struct {
		Layout value
		TimeMS value `json:"time_ms"`
		Node   value
		Seq    value
	}
	if !strings.HasPrefix(strings.TrimSpace(line), "{") {
		return Record{}, errors.New("expected a JSON object")
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	switch err := d.Decode(&r); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Record{}, errors.New("the object is not complete")
	case err != nil:
		if text, unknown := strings.CutPrefix(err.Error(), "json: "); unknown {
			err = fmt.Errorf("%s: the keys are layout, time_ms, node and seq", text)
		}
		return Record{}, err
	}
	if _, err := d.Token(); err != io.EOF {
		return Record{}, fmt.Errorf("unexpected text after the object at offset %d", d.InputOffset())
	}
	return Record{string(r.Layout), string(r.TimeMS), string(r.Node), string(r.Seq)}, nil
}
