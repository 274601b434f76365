package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// exact decodes JSON with its numbers as their digits.
func exact(t *testing.T, b []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("no JSON: %v\n%s", err, b)
	}
	return v
}

// checkJSON checks the object of a result against the result.
func checkJSON(t *testing.T, r Result) {
	t.Helper()
	b := must.Get(json.Marshal(r.JSON()))(t)
	v := exact(t, b)
	best := &r.Readings[0]
	if v["layout"] != best.Name || v["dec"] != best.Dec() || v["hex"] != best.Hex() || v["from"] != best.Form.String() {
		t.Errorf("the object of %q is %s", r.Text, b)
	}
	if others, ok := v["others"].([]any); !ok || len(others) != len(r.Readings)-1 {
		t.Errorf("the object of %q has %d others, want %d", r.Text, len(others), len(r.Readings)-1)
	}
	if !best.HasParts {
		for _, key := range []string{"time", "time_ms", "node", "seq"} {
			if got, ok := v[key]; got != nil || !ok {
				t.Errorf("the object of %q has %s %v, want null", r.Text, key, got)
			}
		}
		return
	}
	for key, want := range map[string]uint64{"node": best.Node, "seq": best.Seq} {
		checkNumber(t, r.Text, key, v[key], want)
	}
}

// checkNumber wants a number up to 2^53, and a string above.
func checkNumber(t *testing.T, text, key string, got any, want uint64) {
	t.Helper()
	digits := fmt.Sprint(want)
	number, isNumber := got.(json.Number)
	switch {
	case want <= 1<<53 && isNumber && number.String() == digits:
	case want > 1<<53 && got == digits:
	default:
		t.Errorf("the object of %q has %s %#v, want %s", text, key, got, digits)
	}
}

// TestJSONText is the form that scripts rely on.
func TestJSONText(t *testing.T) {
	for _, tt := range []struct{ layout, text, want string }{
		{
			"flake-idgen", "7130316800004390912",
			`{"layout":"flake-idgen","time":"2023-11-14T22:13:20.001Z","time_ms":1700000000001,"node":48,"node_parts":{"datacenter":1,"worker":16},"seq":0,"dec":"7130316800004390912","hex":"62f3f95a00430000"}`,
		},
		{
			// The highest ID of all: its time is beyond int64, and its year beyond RFC
			// 3339.
			"boundary", "0xffffffffffffffffffffffffffffffff",
			`{"layout":"boundary","time":null,"time_ms":"18446744073709551615","node":281474976710655,"seq":65535,"dec":"340282366920938463463374607431768211455","hex":"ffffffffffffffffffffffffffffffff"}`,
		},
		{
			"bits=time:8.node:56,epoch=1969-12-31T23:59:59.5Z", "144115188075855871",
			`{"layout":"bits=time:8.node:56,unit=1ms,epoch=-500","time":"1969-12-31T23:59:59.501Z","time_ms":-499,"node":"72057594037927935","seq":0,"dec":"144115188075855871","hex":"01ffffffffffffff"}`,
		},
		{
			"bits=time:8.node:53.seq:2,unit=100us,epoch=0", "72057594037927935",
			`{"layout":"bits=time:8.node:53.seq:2,unit=100µs,epoch=1970-01-01T00:00:00Z","time":"1970-01-01T00:00:00.000100000Z","time_ms":0,"node":9007199254740991,"seq":3,"dec":"72057594037927935","hex":"00ffffffffffffff"}`,
		},
	} {
		l := must.Get(firn.ParseLayout(tt.layout))(t)
		got, err := json.Marshal(mustRead(t, tt.text, Options{Layout: l}).Readings[0].Parts())
		if err != nil || string(got) != tt.want {
			t.Errorf("the object of %s by layout %s is\n got %s\nwant %s", tt.text, tt.layout, got, tt.want)
		}
	}
}

func TestMillis(t *testing.T) {
	for _, tt := range []struct {
		t    time.Time
		want string
	}{
		{time.UnixMilli(0), "0"},
		{time.UnixMilli(-1), "-1"},
		{time.UnixMilli(-999), "-999"},
		{time.UnixMilli(-1000), "-1000"},
		{time.Unix(0, -1), "-1"},
		{time.UnixMilli(1 << 53), "9007199254740992"},
		{time.UnixMilli(1<<53 + 1), `"9007199254740993"`},
		{time.UnixMilli(math.MaxInt64), `"9223372036854775807"`},
		{time.Unix(math.MaxUint64/1000, 615e6), `"18446744073709551615"`},
		{time.Unix(1<<55, 0), `"36028797018963968000"`},
	} {
		if got, err := json.Marshal(Millis(tt.t)); err != nil || string(got) != tt.want {
			t.Errorf("Millis(%d s %d ns) = %s, want %s", tt.t.Unix(), tt.t.Nanosecond(), got, tt.want)
		}
	}
}
