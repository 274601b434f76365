package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/form"
)

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
		r := must.Get(form.ParseParts(strings.TrimSuffix(line, "\r")))(t)
		layout := string(r.Layout)
		if layout == "" {
			layout = "default"
		}
		back, stderr, code := runFirn(t, "", "inspect", "--json", "--layout", layout, got.Dec)
		if code != exitFine || !bytes.Contains([]byte(back), []byte(`"hex":"`+got.Hex+`"`)) {
			t.Fatalf("compose - of %q gives %s, and inspect of that %s%s", line, stdout, back, stderr)
		}
	})
}
