package inspect

import (
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	x := strings.Repeat("x", 62)
	for _, row := range []struct{ text, want string }{
		{"", `""`},
		{"a\"\n\xff", `"a\"\n\xff"`},
		{x + "yz", `"` + x + `yz"`},
		{x + "yz!", `"` + x + `yz"…`},
		{x + "é", `"` + x + `é"`},
		{x + "y€", `"` + x + `y"…`}, // never half a character
		{x + "😀", `"` + x + `"…`},
		{strings.Repeat("\x80", 100), `"` + strings.Repeat(`\x80`, 60) + `"…`}, // no characters at all
	} {
		if got := Quote(row.text); got != row.want {
			t.Errorf("Quote(%q) = %s, want %s", row.text, got, row.want)
		}
	}
}

// TestPercent is never certain, and never nothing.
func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0: "< 0.1 %", 0.0005: "< 0.1 %", 0.014: "1.4 %", 0.54: "54 %", 0.991: "99.1 %", 1: "> 99.9 %"} {
		if got := Percent(share); got != want {
			t.Errorf("Percent(%g) = %q, want %q", share, got, want)
		}
	}
}
