package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Record describes the parts of an ID in JSON.
type Record struct {
	Layout Text
	TimeMS Text `json:"time_ms"`
	Node   Text
	Seq    Text
}

// A Text is the text of a value in JSON, or "" if it is null. A string
// stands for the number in it. Numbers keep their digits and never pass through
// a float64.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (v *Text) UnmarshalJSON(b []byte) error {
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
	*v = Text(text)
	return nil
}

// ParseRecord parses a JSON object with the keys layout, time_ms, node and seq.
// Unknown and repeated keys are errors.
func ParseRecord(line string) (r Record, err error) {
	switch text := strings.TrimSpace(line); {
	case line == "":
		return r, errors.New("the line is empty")
	case !strings.HasPrefix(text, "{"):
		return r, errors.New("expected a JSON object")
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	switch err := d.Decode(&r); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return r, errors.New("the object is not complete")
	case err != nil:
		if text, unknown := strings.CutPrefix(err.Error(), "json: "); unknown {
			err = fmt.Errorf("%s: the keys are layout, time_ms, node and seq", text)
		}
		return r, err
	}
	if _, err := d.Token(); err != io.EOF {
		return r, fmt.Errorf("unexpected text after the object at offset %d", d.InputOffset())
	}
	return r, nil
}
