package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn"
)

// The ID of flake-idgen's examples: 42 bits of time, 10 of node, 12 of
// sequence, in bytes, as biguint-format prints them, and in uneven groups.
func TestAppendGroups(t *testing.T) {
	bits := firn.Binary.Append(nil, 0x62f3f95a00430001)
	for group, want := range map[int]string{
		8:    "01100010 11110011 11111001 01011010 00000000 01000011 00000000 00000001",
		12:   "0110 001011110011 111110010101 101000000000 010000110000 000000000001",
		63:   "0 110001011110011111110010101101000000000010000110000000000000001",
		64:   "0110001011110011111110010101101000000000010000110000000000000001",
		1000: "0110001011110011111110010101101000000000010000110000000000000001",
	} {
		if got := string(appendGroups(nil, bits, group)); got != want {
			t.Errorf("appendGroups(%s, %d) = %s, want %s", bits, group, got, want)
		}
	}
}

// TestFormatNames: completions, help and pages name each format that has a name
// of its own.
func TestFormatNames(t *testing.T) {
	texts := map[string]string{"completions": strings.Join(formatNames, " "), "firn convert --help": newConvert(new(app)).Long}
	for _, file := range []string{"../../internal/protocol/httpapi/openapi.yaml", "../../../docs/http.md"} {
		text, err := os.ReadFile(file)
		if err != nil && !strings.Contains(file, "docs") { // the module may stand alone
			t.Fatal(err)
		}
		if err == nil {
			texts[file] = string(text)
		}
	}
	n := 0
	for f := firn.Format(0); f.Fits(128) == nil; f++ {
		n++
		for where, text := range texts {
			if !regexp.MustCompile(`\b` + f.String() + `\b`).MatchString(text) {
				t.Errorf("%s: no format %v", where, f)
			}
		}
	}
	if n < 9 {
		t.Errorf("only %d formats have names of their own", n)
	}
}
