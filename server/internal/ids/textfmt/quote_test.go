package textfmt

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
