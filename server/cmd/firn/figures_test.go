//go:build linux || darwin

package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestFigures: what metrics show of a store, and do not show without one.
func TestFigures(t *testing.T) {
	for _, args := range [][]string{nil, {"--node", "3"}} {
		r := startServe(t, nil, args...)
		if status, _, body := r.post(t, "orders"); status != 200 {
			t.Fatal(status, body)
		}
		resp, err := http.Get(r.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		text := string(data)
		for _, line := range []string{`firn_store_up 1`, `firn_cas_total\{result="applied",sequencer="orders"\} [1-9]\d*`, `firn_cas_total\{result="unknown",sequencer="orders"\} 0`} {
			if got := regexp.MustCompile("(?m)^" + line + "$").MatchString(text); got != (args == nil) {
				t.Errorf("%q: there is %s: %t", args, line, got)
			}
		}
		if strings.Contains(text, "\nfirn_clock_offset_seconds ") {
			t.Errorf("%q: alone it knows of other clocks", args)
		}
		r.stop()
	}
}
