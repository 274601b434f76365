package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseRecord(t *testing.T) {
	for _, tt := range []struct {
		line string
		want composeRecord
	}{
		{`{}`, composeRecord{}},
		{` { } `, composeRecord{}},
		{`{"layout":"default","time_ms":1,"node":2,"seq":3}`, composeRecord{"default", "1", "2", "3"}},
		{`{"seq":"3","node":"2","time_ms":"1"}`, composeRecord{"", "1", "2", "3"}},
		{`{"time_ms":-5,"node":18446744073709551615}`, composeRecord{"", "-5", "18446744073709551615", ""}},
		{`{"time_ms":null,"layout":null}`, composeRecord{}},
		{`{"\u006eode":"\u0031"}`, composeRecord{node: "1"}},
		{"{\t\"node\" :\t0 ,\"seq\": 0}\r", composeRecord{node: "0", seq: "0"}},
		{`{"layout":"µ"}`, composeRecord{layout: "µ"}},
	} {
		got, err := parseRecord(tt.line)
		if err != nil || got != tt.want {
			t.Errorf("parseRecord(%s) = %+v, %v, want %+v", tt.line, got, err, tt.want)
		}
	}
	for line, want := range map[string]string{
		`5`:                     "it is no JSON object at offset 0",
		`{`:                     "there should be a string at offset 1",
		`{"node"}`:              "there should be a colon",
		`{"node":}`:             "node should be a number or a string",
		`{"node":1,}`:           "there should be a string",
		`{"node":1 "seq":2}`:    "there should be a comma or a }",
		`{"node":1}}`:           "there is something after the object",
		`{"node":1.0}`:          "node should be a whole number, written with all its digits",
		`{"node":1e3}`:          "node should be a whole number, written with all its digits",
		`{"node":01}`:           "node has leading zeros",
		`{"node":-}`:            "node should be a number or a string",
		`{"node":true}`:         "node should be a number or a string",
		`{"node":[1]}`:          "node should be a number or a string",
		`{"node":""}`:           "node is empty",
		`{"layout":5}`:          "layout should be a string",
		`{"Node":5}`:            `there is no key "Node"`,
		`{"node":1,"node":1}`:   "the key node is given twice",
		`{"node":"1`:            "a string has no end",
		`{"node":"\x"}`:         "there is no proper string",
		`{"node":1`:             "there should be a comma or a }",
		`{"node":nullnull}`:     "there should be a comma or a }",
		"{\"node\":\"1\n\"}":    "there is no proper string",
		`{"node":12345678901x}`: "there should be a comma or a }",
	} {
		if got, err := parseRecord(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseRecord(%s) = %+v, %v, want an error with %q", line, got, err, want)
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
		got, err := parseRecord(line)
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
			t.Fatalf("parseRecord(%q) = %+v, and encoding/json says %v", line, got, err)
		}
		if d.More() {
			t.Fatalf("parseRecord(%q) = %+v, and there is more", line, got)
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
		if same := (composeRecord{layout, text(want.TimeMS), text(want.Node), text(want.Seq)}); got != same {
			t.Fatalf("parseRecord(%q) = %+v, encoding/json reads %+v", line, got, same)
		}
	})
}

// FuzzCompose sends a line through compose -: one line of JSON must come out,
// whatever goes in, and an ID must read back as what it was made of.
func FuzzCompose(f *testing.F) {
	for _, line := range []string{
		`{"layout":"default","time_ms":1800000000000,"node":7,"seq":3}`, `{"layout":"boundary","time_ms":"18446744073709551615","node":1}`,
		`{"layout":"lable,mode=spread,cluster=3","time_ms":1700000000000,"node":2047}`, `{"layout":"bits=time:41.node:22,unit=1h","time_ms":5}`,
		`{"layout":"flake-idgen","time_ms":1,"node":"datacenter=9,worker=7"}`, `{"time_ms":-1}`, `{"layout":"ksuid","time_ms":1700000000000}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n") {
			return
		}
		stdout, _, code := runFirn(t, line+"\n", "compose", "-")
		var got struct{ Dec, Hex, Error string }
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || strings.Count(stdout, "\n") != 1 {
			t.Fatalf("compose - of %q gives %q: %v", line, stdout, err)
		}
		if (got.Error != "") != (code == exitNo) || (got.Error == "") != (got.Dec != "" && got.Hex != "") {
			t.Fatalf("compose - of %q ends with %d: %s", line, code, stdout)
		}
		if got.Error != "" {
			return
		}
		r, err := parseRecord(strings.TrimSuffix(line, "\r"))
		if err != nil {
			t.Fatal(err)
		}
		layout := r.layout
		if layout == "" {
			layout = "default"
		}
		back, stderr, code := runFirn(t, "", "inspect", "--json", "--layout", layout, got.Dec)
		if code != exitFine || !bytes.Contains([]byte(back), []byte(`"hex":"`+got.Hex+`"`)) {
			t.Fatalf("compose - of %q gives %s, and inspect of that %s%s", line, stdout, back, stderr)
		}
	})
}
