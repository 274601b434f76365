package textfmt

import (
	"errors"
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

func TestMessage(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"firn: the time is over", "the time is over"},
		{"sequencer: grant: sqlstore: no table", "no table"},
		{"orders: grant: damaged", "orders: grant: damaged"},
		{"firn", "firn"},
		{"grant: ", ""},
	} {
		if got := Message(errors.New(row.text)); got != row.want {
			t.Errorf("Message(%q) = %q, want %q", row.text, got, row.want)
		}
	}
}
