package form

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firnid/firn"
)

func TestParseInput(t *testing.T) {
	for _, name := range []string{"auto", "dec", "hex", "bin", "base32", "base36", "base58", "base62", "base7", "flake32", "flake58", "uuid", "raw", "xid", "ksuid", "flake62"} {
		e, err := ParseInput(name)
		if err != nil || e.String() != name {
			t.Errorf("ParseInput(%q) = %v, %v", name, e, err)
		}
	}
	for name, same := range map[string]string{"ulid": "base32", "objectid": "hex"} {
		if e, err := ParseInput(name); err != nil || e.String() != same {
			t.Errorf("ParseInput(%q) = %v, %v, want %s", name, e, err, same)
		}
	}
	for _, name := range []string{"", "base63", "AUTO", "decimal"} {
		if e, err := ParseInput(name); err == nil {
			t.Errorf("ParseInput(%q) = %v, want an error", name, e)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		text string
		from string
		bits int
		want string // hexadecimal
		as   string
	}{
		{"255", "auto", 0, "00000000000000ff", "dec"},
		{"255", "auto", 128, "000000000000000000000000000000ff", "dec"},
		{"18446744073709551615", "auto", 0, "ffffffffffffffff", "dec"},
		{"18446744073709551616", "auto", 0, "00000000000000010000000000000000", "dec"},
		{"0xff", "auto", 0, "00000000000000ff", "hex"},
		{"0x507f1f77bcf86cd799439011", "auto", 0, "507f1f77bcf86cd799439011", "hex"},
		{"0x507f1f77bcf86cd799439011", "auto", 128, "00000000507f1f77bcf86cd799439011", "hex"},
		{"0000000000000012", "auto", 0, "0000000000000012", "hex"},
		{"00000000000000000000000000000012", "auto", 0, "00000000000000000000000000000012", "hex"},
		{"0000000000000012", "dec", 0, "000000000000000c", "dec"},
		{"1000000000000012", "auto", 0, "00038d7ea4c6800c", "dec"},
		{"00000000000000ff", "auto", 0, "00000000000000ff", "hex"},
		{"000000000000000000000000000000ff", "auto", 0, "000000000000000000000000000000ff", "hex"},
		{"507f1f77bcf86cd799439011", "auto", 0, "507f1f77bcf86cd799439011", "hex"},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "auto", 0, "01563e3ab5d3d6764c61efb99302bd5b", "base32"},
		{"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "auto", 0, "017f22e279b07cc398c4dc0c0c07398f", "uuid"},
		{"AboKHPfZvePUStfgB6", "base62", 0, "0000018bcfe56800ffffffffffff8000", "base62"},
		{"z", "base62", 0, "000000000000003d", "base62"},
		{"z", "base62", 128, "0000000000000000000000000000003d", "base62"},
		{"ff", "hex", 0, "00000000000000ff", "hex"},
		{`="255"`, "auto", 0, "00000000000000ff", "dec"},
		{"'255", "dec", 64, "00000000000000ff", "dec"},
		{"+255", "auto", 0, "00000000000000ff", "dec"},
		{`="0190163d-8694-739b-aea5-966c26f8ad91"`, "auto", 0, "0190163d8694739baea5966c26f8ad91", "uuid"},
		{"9m4e2mr0ui3e8a215n4g", "xid", 0, "4d88e15b60f486e428412dc9", "xid"},
	} {
		from, err := ParseInput(tt.from)
		if err != nil {
			t.Fatal(err)
		}
		got, as, err := from.Decode(tt.text, tt.bits)
		if err != nil || fmt.Sprintf("%x", got) != tt.want || as.String() != tt.as {
			t.Errorf("Decode(%q, %s, %d) = %x, %s, %v, want %s, %s", tt.text, tt.from, tt.bits, got, as, err, tt.want, tt.as)
		}
	}
	for _, text := range []string{"helloworlds", "AboKHPfZvePUStfgB6", "038940FDM0000"} {
		var doubt *AmbiguousError
		if b, as, err := new(Form).Decode(text, 0); !errors.As(err, &doubt) || len(doubt.Names) == 0 {
			t.Errorf("Decode(%q) = %x, %s, %v, want an *AmbiguousError", text, b, as, err)
		}
	}
	for _, text := range []string{"", "foo", "-1", "0x", "340282366920938463463374607431768211456"} {
		if b, as, err := new(Form).Decode(text, 0); err == nil {
			t.Errorf("Decode(%q) = %x, %s, want an error", text, b, as)
		}
	}
}

// TestRaw: no bytes have a meaning of their own.
func TestRaw(t *testing.T) {
	for _, text := range []string{"1234567n", "'1234567", `="12345"`, "+1234567", "        ", "NULL\r\n\x00\xff"} {
		if id, as, err := Of(firn.Raw).Decode(text, 64); string(id) != text || !as.Is(firn.Raw) || err != nil {
			t.Errorf("Decode(%q) = %q, %v, %v", text, id, as, err)
		}
	}
	for _, bits := range []int{96, 128, 160} {
		if id, _, err := Of(firn.Raw).Decode(strings.Repeat("1", bits/8), bits); len(id) != bits/8 || err != nil {
			t.Errorf("Decode of %d bits = %q, %v", bits, id, err)
		}
	}
}

// TestFloats names the cause if a number was written as a float, whichever way.
func TestFloats(t *testing.T) {
	for _, text := range []string{"1.17918E+18", "1.17918E18", "1,17918E+18", "+1.17918E+18", "117918e13", "117117117117117117.0", "1E+18", "1e+18"} {
		if id, _, err := new(Form).Decode(text, 64); err == nil || !strings.Contains(err.Error(), "floating-point") && !errors.As(err, new(*AmbiguousError)) {
			t.Errorf("Decode(%q) = %x, %v; want that it is a float", text, id, err)
		}
	}
	for _, text := range []string{"", "NULL", `\N`, "None", "nan", "null"} {
		if !IsMissing(text) {
			t.Errorf("%q is an ID", text)
		}
	}
	if IsMissing("0") || IsMissing("none of them") {
		t.Error("0 is not an ID")
	}
}

// TestKSUIDRange reads the lowest and the highest.
func TestKSUIDRange(t *testing.T) {
	ksuid, err := ParseInput("ksuid")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"000000000000000000000000000": "0000000000000000000000000000000000000000",
		"aWgEPTl1tmebfsQzFP4bxwgy80V": "ffffffffffffffffffffffffffffffffffffffff",
	} {
		if b, _, err := ksuid.Decode(text, 0); err != nil || fmt.Sprintf("%x", b) != want {
			t.Errorf("Decode(%q) = %x, %v, want %s", text, b, err, want)
		}
	}
	if b, _, err := ksuid.Decode("aWgEPTl1tmebfsQzFP4bxwgy80W", 0); err == nil {
		t.Errorf("one more than the highest KSUID = %x", b)
	}
}
