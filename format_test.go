package firn_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// encFormats returns every Format.
func encFormats() []firn.Format {
	var list []firn.Format
	for n := range math.MaxUint16 + 1 {
		if f := firn.Format(n); f.CheckBits(128) == nil {
			list = append(list, f)
		}
	}
	return list
}

// An encKind is one of the two types of ID, for laws that hold for both.
type encKind[T comparable] struct {
	name    string
	bits    int
	of      func(hi, lo uint64) T
	number  func(T) *big.Int
	compare func(a, b T) int
	append  func(firn.Format, []byte, T) []byte
	parse   func(firn.Format, string) (T, error)
	parseID func(string) (T, error)
}

var encKind64 = encKind[firn.ID]{
	name:    "ID",
	bits:    64,
	of:      func(_, lo uint64) firn.ID { return firn.ID(lo) },
	number:  func(id firn.ID) *big.Int { return new(big.Int).SetUint64(uint64(id)) },
	compare: cmp.Compare[firn.ID],
	append:  firn.Format.Append,
	parse:   firn.Format.Parse,
	parseID: firn.ParseID,
}

var encKind128 = encKind[firn.ID128]{
	name:    "ID128",
	bits:    128,
	of:      firn.ID128FromUint64s,
	number:  func(id firn.ID128) *big.Int { return new(big.Int).SetBytes(id[:]) },
	compare: firn.ID128.Compare,
	append:  firn.Format.Append128,
	parse:   firn.Format.Parse128,
	parseID: firn.ParseID128,
}

// samples returns numbers at which widths and words change, and some others.
func (k encKind[T]) samples() []T {
	var list []T
	for i := range 64 {
		for d := range uint64(3) {
			v := uint64(1)<<i + d - 1
			list = append(list, k.of(0, v), k.of(v, 0), k.of(v, math.MaxUint64), k.of(v, v))
		}
	}
	rnd := rand.New(rand.NewPCG(64, 128))
	for range 300 {
		hi, lo := rnd.Uint64()>>rnd.UintN(64), rnd.Uint64()>>rnd.UintN(64)
		list = append(list, k.of(hi, lo), k.of(0, lo))
	}
	slices.SortFunc(list, k.compare)
	return slices.Compact(list)
}

// encDigits returns the alphabet of f by its definition, or "" if f is not a
// number base.
func encDigits(f firn.Format) string {
	const all = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	without := func(s, letters string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(letters, r) {
				return -1
			}
			return r
		}, s)
	}
	name := f.String()
	switch name {
	case "dec":
		return all[:10]
	case "hex":
		return strings.ToLower(all[:16])
	case "bin":
		return all[:2]
	case "base32":
		return without(all[:36], "ILOU")
	case "base58":
		return without(all, "0IOl")
	}
	for n := 2; n <= 62; n++ {
		if name == fmt.Sprint("base", n) || name == fmt.Sprint("flake", n) {
			return all[:n]
		}
	}
	return ""
}

// encBig returns the short text of v with these digits, computed by math/big.
func encBig(v *big.Int, digits string) string {
	const from = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" // the digits of math/big
	return strings.Map(func(r rune) rune {
		return rune(digits[strings.IndexRune(from, r)])
	}, v.Text(len(digits)))
}

func TestFormatLaws(t *testing.T) {
	t.Run("ID", func(t *testing.T) { encLaws(t, encKind64) })
	t.Run("ID128", func(t *testing.T) { encLaws(t, encKind128) })
}

func encLaws[T comparable](t *testing.T, k encKind[T]) {
	samples := k.samples()
	count := 0
	for _, f := range encFormats() {
		if err := f.CheckBits(k.bits); err != nil {
			if f != firn.UUID || k.bits != 64 {
				t.Errorf("%v: CheckBits(%d) = %v, want nil", f, k.bits, err)
			}
			continue
		}
		count++
		digits := encDigits(f)
		width := len(k.append(f, nil, samples[len(samples)-1])) // that of the greatest
		var last string
		for i, id := range samples {
			text := string(k.append(f, nil, id))
			if got, err := k.parse(f, text); err != nil || got != id {
				t.Fatalf("%v: Parse(%q) = %v, %v, want %v", f, text, got, err, id)
			}
			// Append touches nothing beyond the bytes that it returns.
			room := bytes.Repeat([]byte("#"), 200)
			if k.append(f, room[:1], id); string(room) != "#"+text+strings.Repeat("#", 199-len(text)) {
				t.Fatalf("%v: Append(%v) gives %q, want %q in it", f, id, room, text)
			}
			if f == firn.Hex {
				if got, err := k.parse(f, "0x"+text); err != nil || got != id {
					t.Fatalf("%v: Parse(%q) = %v, %v, want %v", f, "0x"+text, got, err, id)
				}
			}
			if digits != "" {
				short := encBig(k.number(id), digits)
				fixed := strings.Repeat(digits[:1], width-len(short)) + short
				if want := map[bool]string{true: fixed, false: short}[f.Fixed()]; text != want {
					t.Fatalf("%v: Append(%v) = %q, want %q", f, id, text, want)
				}
				// Texts between the two lengths are accepted, longer ones are
				// not.
				for _, zeros := range []int{0, 1, width - len(short), width - len(short) + 1} {
					encFuzzFormatParse(t, k, f, strings.Repeat(digits[:1], zeros)+short)
				}
			}
			if f.Fixed() {
				if len(text) != width {
					t.Fatalf("%v: Append(%v) = %q, %d bytes long, want %d", f, id, text, len(text), width)
				}
				if i > 0 && last >= text {
					t.Fatalf("%v: %q of %v is not after %q of %v", f, text, id, last, samples[i-1])
				}
			}
			last = text
		}
	}
	t.Logf("%d formats, %d IDs in each", count, len(samples))
}

func TestFormatAllocs(t *testing.T) {
	b := make([]byte, 0, 128)
	id, wide := firn.ID(math.MaxUint64), firn.ID128FromUint64s(math.MaxUint64, math.MaxUint64)
	none := func(what string, f firn.Format, call func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Errorf("%v: %s allocates %v times, want 0", f, what, n)
		}
	}
	for _, f := range encFormats() {
		if f.CheckBits(64) == nil {
			text := f.Text(id)
			none("Append", f, func() { b = f.Append(b[:0], id) })
			none("Parse", f, func() { id, _ = f.Parse(text) })
		}
		text := f.Text128(wide)
		none("Append128", f, func() { b = f.Append128(b[:0], wide) })
		none("Parse128", f, func() { wide, _ = f.Parse128(text) })
	}
}

func TestFormatNames(t *testing.T) {
	names := map[string]string{ // as given: as printed
		"dec": "dec", "hex": "hex", "bin": "bin", "uuid": "uuid", "raw": "raw",
		"base32": "base32", "base36": "base36", "base58": "base58", "base62": "base62",
		"flake32": "flake32", "flake58": "flake58", "flake16": "flake16", "flake62": "flake62",
		"base2": "bin", "base3": "base3", "base16": "base16", "base61": "base61",
		"base10": "base10", "flake10": "dec", "flake2": "flake2",
	}
	for s, want := range names {
		f, err := firn.ParseFormat(s)
		if err != nil || f.String() != want {
			t.Errorf("ParseFormat(%q) = %v, %v, want %s", s, f, err, want)
		}
	}
	seen := make(map[string]bool)
	for _, f := range encFormats() {
		s := f.String()
		if seen[s] {
			t.Errorf("two formats have the name %s", s)
		}
		seen[s] = true
		if got, err := firn.ParseFormat(s); err != nil || got != f {
			t.Errorf("ParseFormat(%q) = %v, %v, want the format that printed it", s, got, err)
		}
	}
	if want := 9 + 56 + 60; len(seen) != want {
		t.Errorf("there are %d formats, want %d", len(seen), want)
	}
	if f := *new(firn.Format); f != firn.Decimal {
		t.Errorf("the zero Format is %v, want dec", f)
	}
}

func TestParseFormatErrors(t *testing.T) {
	for _, s := range []string{
		"", "-", "base", "flake", "base0", "base1", "base63", "base062", "base+62", "base-62", "flake63", "base99999999999999999999",
		"Hex", "DEC", "hex ", " hex", "decimal", "base62-", "base62-fixed", "hex-short", "flake1", "62", "Format(9)",
	} {
		f, err := firn.ParseFormat(s)
		var parse *firn.ParseError
		if !errors.As(err, &parse) || parse.What != "format" || parse.Text != s || !strings.Contains(parse.Reason, "flake62") || f != 0 {
			t.Errorf("ParseFormat(%q) = %v, %v, want a *ParseError that lists the names", s, f, err)
		}
		f = firn.Base58
		if err := f.UnmarshalText([]byte(s)); err == nil || f != firn.Base58 {
			t.Errorf("UnmarshalText(%q) = %v and sets %v, want an error that leaves base58", s, err, f)
		}
	}
}

func TestNotAFormat(t *testing.T) {
	for n := range math.MaxUint16 + 1 {
		f := firn.Format(n)
		if f.CheckBits(128) == nil {
			continue
		}
		_, textErr := f.MarshalText()
		_, err := f.Parse("1")
		_, wideErr := f.Parse128("1")
		if f.String() != fmt.Sprintf("Format(%d)", n) || textErr == nil || f.CheckBits(64) == nil ||
			err == nil || !strings.Contains(err.Error(), "is not a format") || wideErr == nil || !strings.Contains(wideErr.Error(), "is not a format") {
			t.Fatalf("Format(%d): %v, MarshalText %v, CheckBits(64) %v, Parse %v, Parse128 %v", n, f, textErr,
				f.CheckBits(64), err, wideErr)
		}
	}
	panics := func(what string, call func()) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, what) {
				t.Errorf("panic %q, want one with %q", got, what)
			}
		}()
		call()
	}
	panics("Format(513) is not a format", func() { firn.Format(513).Append(nil, 1) })
	panics("Format(513) is not a format", func() { firn.Format(513).Append128(nil, firn.ID128{}) })
	panics("format uuid is for 128-bit IDs", func() { firn.UUID.Append(nil, 1) })
	for _, bits := range []int{-1, 0, 63, 65, 129} {
		if firn.Hex.CheckBits(bits) == nil {
			t.Errorf("hex: CheckBits(%d) = nil, want an error", bits)
		}
	}
}

// What the errors for wrong texts say, of ParseID and ParseID128, in JSON and
// in a format.
func TestParseErrors(t *testing.T) {
	for _, test := range []struct {
		from string
		bits int
		text string
		pos  int
		want []string
	}{
		{"", 64, "", -1, []string{"empty", "64-bit ID has 1 to 20 digits"}},
		{"", 64, "-1", 0, []string{"'-' at offset 0", "IDs have none"}},
		{"", 64, " 1", 0, []string{"' ' at offset 0", "decimal"}},
		{"", 64, "12AB", 2, []string{"'A' at offset 2", "begins with 0x"}},
		{"", 64, "0X1f", 1, []string{"'X' at offset 1", "begins with 0x"}},
		{"", 64, "0x", -1, []string{"nothing follows the 0x", "1 to 16 digits"}},
		{"", 64, "0x-1", 2, []string{"'-' at offset 2", "hexadecimal"}},
		{"", 64, "0x12345678901234567", -1, []string{"17 digits", "at most 16"}},
		{"", 64, "18446744073709551616", -1, []string{"more than the greatest 64-bit ID, 18446744073709551615"}},
		{"", 64, "018446744073709551615", -1, []string{"21 digits", "at most 20"}},
		{"", 64, "৪২", 0, []string{"'৪' at offset 0"}},
		{"", 128, "", -1, []string{"empty", "128-bit ID has 1 to 39 digits"}},
		{"", 128, "-0000000-0000-0000-0000-000000000000", 0, []string{"'-' at offset 0"}},
		{"", 128, "1-2", -1, []string{"36 characters in the form 8-4-4-4-12"}},
		{"", 128, "0198f3a05b7c7f00a1b2c3d4e5f60718", 4, []string{"'f' at offset 4", "begins with 0x"}},
		{"", 128, "340282366920938463463374607431768211456", -1, []string{"more than the greatest 128-bit ID, 340282366920938463463374607431768211455"}},
		{"", 128, strings.Repeat("0", 40), -1, []string{"40 digits", "at most 39"}},
		{"JSON", 64, `1.5`, 1, []string{"'.' at offset 1"}},
		{"JSON", 128, `1e2`, 1, []string{"'e' at offset 1"}},
		{"dec", 64, "+1", 0, []string{"'+' at offset 0", "sign"}},
		{"dec", 64, "12\xff4", 2, []string{"'�' at offset 2"}},
		{"hex", 64, "0x12g", 4, []string{"'g' at offset 4", "hexadecimal digit"}},
		{"dec", 64, "v1_03887nf7a8003", 0, []string{"'v' at offset 0", "a typed or a veiled ID"}},
		{"hex", 128, "-ff", 0, []string{"sign"}},
		{"base16", 64, "0xff", 1, []string{"'x' at offset 1", "base16", "0123456789ABCDEF"}},
		{"base32", 64, "0123O", 4, []string{"'O' at offset 4", "Crockford", "leaves out I, L, O and U"}},
		{"base32", 64, "0-1", 1, []string{"'-' at offset 1", "base32", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"}},
		{"base32", 64, "G000000000000", -1, []string{"greatest 64-bit ID, FZZZZZZZZZZZZ"}},
		{"base58", 64, "10", 1, []string{"'0' at offset 1", "base58", "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"}},
		{"base62", 64, "LygHa16AHYF0", -1, []string{"12 digits", "at most 11"}},
		{"base36", 64, "3w5e11264sgsg", -1, []string{"greatest 64-bit ID, 3W5E11264SGSF"}},
		{"flake32", 64, "W", 0, []string{"'W' at offset 0", "flake32", "UV"}},
		{"uuid", 64, "00000000-0000-0000-0000-000000000001", -1, []string{"for 128-bit IDs"}},
		{"uuid", 128, "", -1, []string{"36 characters in the form 8-4-4-4-12"}},
		{"raw", 64, "1234567", -1, []string{"7 bytes", "exactly 8"}},
		{"raw", 128, "12345678", -1, []string{"8 bytes", "exactly 16"}},
	} {
		var id firn.ID
		var wide firn.ID128
		var err error
		what := map[int]string{64: "ID", 128: "ID128"}[test.bits]
		switch {
		case test.from == "" && test.bits == 64:
			id, err = firn.ParseID(test.text)
		case test.from == "":
			wide, err = firn.ParseID128(test.text)
		case test.from == "JSON" && test.bits == 64:
			err = json.Unmarshal([]byte(test.text), &id)
		case test.from == "JSON":
			err = json.Unmarshal([]byte(test.text), &wide)
		default:
			f := must.Get(firn.ParseFormat(test.from))(t)
			what = test.from + " " + what
			if test.bits == 64 {
				id, err = f.Parse(test.text)
			} else {
				wide, err = f.Parse128(test.text)
			}
		}
		if id != 0 || !wide.IsZero() {
			t.Errorf("%s from %q = %v, %v with an error, want 0", what, test.text, id, wide)
		}
		encCheckError(t, err, what, test.text, test.pos, test.want...)
	}
}

// encCheckError checks that err is a *ParseError that contains these texts.
func encCheckError(t *testing.T, err error, what, text string, pos int, want ...string) {
	t.Helper()
	var parse *firn.ParseError
	if !errors.As(err, &parse) {
		t.Errorf("%s from %q: error %v, want a *ParseError", what, text, err)
		return
	}
	if parse.What != what || parse.Text != text || parse.Pos != pos {
		t.Errorf("%s from %q: What %q, Text %q, Pos %d, want Pos %d: %v", what, text, parse.What, parse.Text, parse.Pos, pos, err)
	}
	for _, s := range want {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%s from %q: %v: want %q in it", what, text, err, s)
		}
	}
}

// A ParseError does not share the caller's bytes; see TestLongTexts.
func TestParseErrorKeepsCopy(t *testing.T) {
	var id firn.ID
	text := []byte("12x")
	err := id.UnmarshalText(text)
	copy(text, "zzz")
	encCheckError(t, err, "ID", "12x", 2)
}
