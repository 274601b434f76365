package inspect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseRecord(t *testing.T) {
	for _, tt := range []struct {
		line string
		want Record
	}{
		{`{}`, Record{}},
		{` { } `, Record{}},
		{`{"layout":"default","time_ms":1,"node":2,"seq":3}`, Record{"default", "1", "2", "3"}},
		{`{"seq": "3", "node": 2, "time_ms":"1"}`, Record{"", "1", "2", "3"}},
		{`{"time_ms":-5,"node":18446744073709551615}`, Record{"", "-5", "18446744073709551615", ""}},
		{`{"time_ms":null,"layout":null}`, Record{}},
		{`{"\u006eode":"\u0031"}`, Record{Node: "1"}},
		{"{\t\"node\" :\t0 ,\"seq\": 0}\r", Record{Node: "0", Seq: "0"}},
		{`{"layout":"µ"}`, Record{Layout: "µ"}},
	} {
		got, err := ParseRecord(tt.line)
		if err != nil || got != tt.want {
			t.Errorf("ParseRecord(%s) = %+v, %v, want %+v", tt.line, got, err, tt.want)
		}
	}
	for line, want := range map[string]string{
		`5`:                     "expected a JSON object",
		`{`:                     "the object is not complete",
		`{"node"}`:              "invalid character '}' after object key",
		`{"node":}`:             "looking for beginning of value at offset 8",
		`{"node":1,}`:           "looking for beginning of object key string",
		`{"node":1 "seq":2}`:    "after object key:value pair at offset 10",
		`{"node":1}}`:           "unexpected text after the object",
		`{"node":1.0}`:          "node must be an integer with all its digits",
		`{"node":1e3}`:          "node must be an integer with all its digits",
		`{"node":01}`:           "invalid character '1' after object key:value pair",
		`{"node":-}`:            "in numeric literal",
		`{"node":true}`:         "node must be a number or a string",
		`{"node":[1]}`:          "node must be a number or a string",
		`{"node":""}`:           "node is empty",
		`{"layout":5}`:          "layout must be a string",
		`{"Node":5}`:            `unknown key "Node"`,
		`{"node":1,"node":1}`:   "the key node is given twice",
		`{"node":"1`:            "the object is not complete",
		`{"node":"\x"}`:         "in string escape code",
		`{"node":1`:             "the object is not complete",
		`{"node":nullnull}`:     "after object key:value pair",
		"{\"node\":\"1\n\"}":    "in string literal",
		`{"node":12345678901x}`: "after object key:value pair",
	} {
		if got, err := ParseRecord(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRecord(%s) = %+v, %v, want an error with %q", line, got, err, want)
		}
	}
}

// FuzzParseRecord holds the parser against encoding/json: what the one takes,
// the other must read alike.
func FuzzParseRecord(f *testing.F) {
	for _, line := range []string{
		`{}`, `{"layout":"default","time_ms":1700000000001,"node":"7","seq":3}`, `{"node":null}`, `{"node":1.5}`, `{"time_ms":-0}`,
		`{"l\u0061yout":"a\"b"}`, `{"node":1,"node":2}`, `{"layout":"\ud800"}`, "{\"layout\":\"\xff\"}", `{"seq":12345678901234567890123}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := ParseRecord(line)
		if err != nil {
			return
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		d.DisallowUnknownFields()
		var want struct {
			Layout *string
			TimeMS any `json:"time_ms"`
			Node   any
			Seq    any
		}
		if err := d.Decode(&want); err != nil {
			t.Fatalf("ParseRecord(%q) = %+v, and encoding/json says %v", line, got, err)
		}
		if d.More() {
			t.Fatalf("ParseRecord(%q) = %+v, and there is more", line, got)
		}
		text := func(v any) string {
			if v == nil {
				return ""
			}
			return fmt.Sprint(v)
		}
		layout := ""
		if want.Layout != nil {
			layout = *want.Layout
		}
		if same := (Record{layout, text(want.TimeMS), text(want.Node), text(want.Seq)}); got != same {
			t.Fatalf("ParseRecord(%q) = %+v, encoding/json reads %+v", line, got, same)
		}
	})
}
