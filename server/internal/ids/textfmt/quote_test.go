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

func TestShort(t *testing.T) {
	long := strings.Repeat("x", maxShort-1)
	for path, want := range map[string]string{
		"/v1/sequencers/orders/next": "/v1/sequencers/orders/next",
		"/v1/\xff\xfe/é":             "/v1/\uFFFD/é",
		long + "é":                   long + "\uFFFD",
	} {
		if got := Short(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
