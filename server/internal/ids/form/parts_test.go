package form

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
)

func TestParseParts(t *testing.T) {
	for _, tt := range []struct {
		line string
		want PartsJSON
	}{
		{`{}`, PartsJSON{}},
		{` { } `, PartsJSON{}},
		{`{"layout":"default","time_ms":1,"node":2,"seq":3}`, PartsJSON{"default", "1", "2", "3"}},
		{`{"seq": "3", "node": 2, "time_ms":"1"}`, PartsJSON{"", "1", "2", "3"}},
		{`{"time_ms":-5,"node":18446744073709551615}`, PartsJSON{"", "-5", "18446744073709551615", ""}},
		{`{"time_ms":null,"layout":null}`, PartsJSON{}},
		{`{"\u006eode":"\u0031"}`, PartsJSON{Node: "1"}},
		{"{\t\"node\" :\t0 ,\"seq\": 0}\r", PartsJSON{Node: "0", Seq: "0"}},
		{`{"layout":"µ"}`, PartsJSON{Layout: "µ"}},
	} {
		got, err := ParseParts(tt.line)
		if err != nil || got != tt.want {
			t.Errorf("ParseParts(%s) = %+v, %v, want %+v", tt.line, got, err, tt.want)
		}
	}
	for line, want := range map[string]string{
		`5`:                   "expected a JSON object",
		`{`:                   "the object is not complete",
		`{"node"}`:            "invalid character '}' after object key",
		`{"node":1}}`:         "unexpected text after the object",
		`{"node":01}`:         "invalid character '1' after object key:value pair",
		`{"node":""}`:         "a value is empty",
		`{"nodes":5}`:         `unknown field "nodes": the keys are layout, time_ms, node and seq`,
		`{"node":1,"node":1}`: "a key is given twice",
		`{"node":"1`:          "the object is not complete",
		`{"node":"\x"}`:       "in string escape code",
	} {
		if got, err := ParseParts(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseParts(%s) = %+v, %v, want an error with %q", line, got, err, want)
		}
	}
}

// Values that are not numbers are errors of the value.
func TestValuesOfParts(t *testing.T) {
	for _, value := range []string{"1.0", "1e3", "true", "[1]", `{"a":1}`, "-1", `"1 "`, "18446744073709551616"} {
		for _, key := range []string{"node", "seq", "layout"} {
			c := Composer{Layout: firn.Default(), Time: time.UnixMilli(1800000000000), HasTime: true, Node: func(firn.Layout) (uint64, error) { return 0, nil }}
			if id, err := c.Compose(`{"` + key + `":` + value + `}`); err == nil {
				t.Errorf("%s %s gives the ID %x, want an error", key, value, id)
			}
		}
	}
}

// FuzzComposer: whatever the line, there is an ID or an error, and an ID reads
// back as what it was made of.
func FuzzComposer(f *testing.F) {
	for _, line := range []string{
		`{"layout":"default","time_ms":1800000000000,"node":7,"seq":3}`, `{"layout":"boundary","time_ms":"18446744073709551615","node":1}`,
		`{"layout":"lable,mode=spread,cluster=3","time_ms":1700000000000,"node":2047}`, `{"layout":"bits=time:41.node:22,unit=1h","time_ms":5}`,
		`{"layout":"flake-idgen","time_ms":1,"node":"datacenter=9,worker=7"}`, `{"time_ms":-1}`, `{"layout":"ksuid","time_ms":1700000000000}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c := Composer{Layout: firn.Default(), Node: func(firn.Layout) (uint64, error) { return 0, nil }}
		id, err := c.Compose(line)
		if err != nil {
			return
		}
		p, _ := ParseParts(line)
		layout := firn.Default()
		if p.Layout != "" {
			layout = firn.MustParseLayout(string(p.Layout))
		}
		parts, e1 := layout.DecomposeBytes(id)
		again, e2 := Compose(layout, parts)
		seq, _ := strconv.ParseUint(string(p.Seq), 10, 64)
		if e1 != nil || e2 != nil || !bytes.Equal(id, again) || parts.Seq != seq {
			t.Fatalf("%q is %x, with the parts %+v, %v, which are %x, %v", line, id, parts, e1, again, e2)
		}
	})
}
