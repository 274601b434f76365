package firn_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// encFuzzIDTexts are texts that are valid or almost valid IDs.
var encFuzzIDTexts = []string{
	"", "0", "1", "-1", "+1", " 1", "1 ", "1_0", "1.0", "1e3", "007", "0x", "0x0", "0xff", "0xFF", "0Xff", "0x0x1", "ff",
	"18446744073709551615", "18446744073709551616", "99999999999999999999", "018446744073709551615",
	"0xffffffffffffffff", "0x10000000000000000", "0x00000000000000001",
	"340282366920938463463374607431768211455", "340282366920938463463374607431768211456", "999999999999999999999999999999999999999",
	"0xffffffffffffffffffffffffffffffff", "0x100000000000000000000000000000000",
	"0198f3a0-5b7c-7f00-a1b2-c3d4e5f60718", "0198F3A0-5B7C-7F00-A1B2-C3D4E5F60718", "0198f3a05b7c7f00a1b2c3d4e5f60718",
	"{0198f3a0-5b7c-7f00-a1b2-c3d4e5f60718}", "0198f3a0-5b7c-7f00-a1b2-c3d4e5f6071", "0198f3a0-5b7c-7f00-a1b2-c3d4e5f6071g",
	"null", `"1"`, "OIl", "LygHa16AHYF", "LygHa16AHYG", "jpXCZedGfVQ", "FZZZZZZZZZZZZ", "fzzzzzzzzzzzz", "G000000000000", "3W5E11264SGSF",
	"12\xff4", "12é", "\x00", "1\x00", "12345678", "1234567890123456", " ", "abc", "x1", "0b1", "١", "urn:uuid:00000000-0000-0000-0000-000000000000",
}

// encFuzzNumber parses s as ParseID and ParseID128 should, with math/big. It
// returns nil if s is not an ID of that many bits.
func encFuzzNumber(s string, bits int) *big.Int {
	digits, base, width := s, 10, 20
	if bits == 128 {
		width = 39
	}
	if bits == 128 && len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		digits, base, width = s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:], 16, 32
	} else if rest, ok := strings.CutPrefix(s, "0x"); ok {
		digits, base, width = rest, 16, bits/4
	}
	if digits == "" || len(digits) > width || strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return nil
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok || n.BitLen() > bits {
		return nil
	}
	return n
}

// encFuzzParse checks one text against encFuzzNumber, and its error.
func encFuzzParse[T idtValue](t *testing.T, k encKind[T], s string) {
	id, err := k.parseID(s)
	want := encFuzzNumber(s, k.bits)
	if want == nil {
		encFuzzCheckError(t, err, k.name, s)
		if id != *new(T) {
			t.Errorf("Parse(%q) = %v with an error", s, id)
		}
	} else if err != nil || k.number(id).Cmp(want) != 0 {
		t.Errorf("Parse(%q) = %v, %v, want %v", s, id, err, want)
	}

	// UnmarshalText behaves the same, and leaves the receiver unchanged on
	// error.
	was := k.of(7, 7)
	got := was
	if textErr := any(&got).(idtPointer).UnmarshalText([]byte(s)); (textErr == nil) != (err == nil) || err == nil && got != id || err != nil && got != was {
		t.Errorf("UnmarshalText(%q) = %v, %v, but Parse = %v, %v", s, got, textErr, id, err)
	}
	if err != nil {
		return
	}
	if back, err := k.parseID(id.String()); err != nil || back != id {
		t.Errorf("Parse(%q) = %v, %v, want %v", id.String(), back, err, id)
	}
}

// encFuzzCheckError checks that err is a *ParseError whose position, if it has
// one, is inside the text and part of the message.
func encFuzzCheckError(t *testing.T, err error, what, text string) {
	t.Helper()
	parse, ok := err.(*firn.ParseError)
	if !ok {
		t.Fatalf("%s from %q: error %v, want a *ParseError", what, text, err)
	}
	if parse.Pos >= len(text) || parse.Pos < -1 || !strings.HasPrefix(text, parse.Text) || parse.Reason == "" {
		t.Fatalf("%s from %q: %#v", what, text, parse)
	}
	if (parse.Pos >= 0) != strings.Contains(parse.Reason, "at offset ") {
		t.Fatalf("%s from %q: Pos %d, but %v", what, text, parse.Pos, err)
	}
}

// encFuzzFormats returns every Format, computed once.
var encFuzzFormats = sync.OnceValue(encFormats)

// encFuzzFormat picks one of all formats.
func encFuzzFormat(n uint16) firn.Format {
	all := encFuzzFormats()
	return all[int(n)%len(all)]
}

// FuzzID reads bytes as an ID in every way: as text, in one of all formats, in
// JSON and from a database.
func FuzzID(f *testing.F) {
	for i, s := range encFuzzIDTexts {
		quoted := must.Get(json.Marshal(s))(f)
		f.Add(uint16(0), quoted, int64(i))
		for j := range encFuzzFormats() {
			if i%7 == j%7 {
				f.Add(uint16(j), []byte(s), int64(-i))
			}
		}
	}
	for _, s := range []string{
		`"\u0031"`, `"\u00310"`, `"\ud83d\ude00"`, `"\n1"`, `"1\/"`, `"\\"`, `""`, `"`, `"\"`, `true`, `{}`, `[]`,
		`-0`, `1E3`, `0.0`, `01`, `[1]`, `{"id":1}`,
		`"1`, `1"`, `"\"1\""`, `"\u00310`, `"\u"`, `nul`, `nullnull`, `NaN`,
	} {
		f.Add(uint16(0), []byte(s), int64(0))
	}
	f.Fuzz(func(t *testing.T, n uint16, data []byte, number int64) {
		format := encFuzzFormat(n)
		encFuzz(t, encKind64, format, data, number)
		encFuzz(t, encKind128, format, data, number)
		s := string(data)
		if g, err := firn.ParseFormat(s); err == nil {
			if h, err := firn.ParseFormat(g.String()); err != nil || h != g {
				t.Errorf("ParseFormat(%q) = %v, which parses as %v, %v", s, g, h, err)
			}
		} else if _, ok := err.(*firn.ParseError); !ok {
			t.Errorf("ParseFormat(%q): error %T", s, err)
		}
	})
}

func encFuzz[T idtValue](t *testing.T, k encKind[T], format firn.Format, data []byte, number int64) {
	encFuzzParse(t, k, string(data))
	encFuzzFormatParse(t, k, format, string(data))
	encFuzzJSON(t, k, data)
	encFuzzScan(t, k, data, number)
}

// encFuzzFormatParse: Append writes what Parse has read, except for leading
// zeros and the case of letters; and Parse agrees with math/big.
func encFuzzFormatParse[T comparable](t *testing.T, k encKind[T], format firn.Format, s string) {
	id, err := k.parse(format, s)
	if want := encFuzzFormatNumber(k, format, s); want == nil {
		encFuzzCheckError(t, err, format.String()+" "+k.name, s)
		return
	} else if err != nil || k.number(id).Cmp(want) != 0 {
		t.Fatalf("%v: Parse(%q) = %v, %v, want %v", format, s, id, err, want)
	}
	if back, err := k.parse(format, string(k.append(format, nil, id))); err != nil || back != id {
		t.Fatalf("%v: Parse(%q) = %v, which parses as %v, %v", format, s, id, back, err)
	}
}

// encFuzzFormatNumber parses s as Parse should, with math/big. It returns nil
// if Parse should reject s.
func encFuzzFormatNumber[T comparable](k encKind[T], format firn.Format, s string) *big.Int {
	switch format {
	case firn.Raw:
		if len(s) != k.bits/8 {
			return nil
		}
		return new(big.Int).SetBytes([]byte(s))
	case firn.UUID:
		if k.bits == 64 || !strings.Contains(s, "-") {
			return nil
		}
		return encFuzzNumber(s, 128)
	}
	digits := encDigits(format)
	if format == firn.Hex {
		s = strings.TrimPrefix(s, "0x")
	}
	if s == "" || len(s) > len(k.append(format, nil, k.of(1<<64-1, 1<<64-1))) {
		return nil
	}
	if len(digits) <= 36 {
		// Letters of either case, but not the two other characters that fold to
		// K and S.
		s = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 'A'
			}
			return r
		}, s)
		digits = strings.ToUpper(digits)
	}
	n := new(big.Int)
	for i := range len(s) {
		d := strings.IndexByte(digits, s[i])
		if d < 0 {
			return nil
		}
		n.Mul(n, big.NewInt(int64(len(digits)))).Add(n, big.NewInt(int64(d)))
	}
	if n.BitLen() > k.bits {
		return nil
	}
	return n
}

// encFuzzJSON: UnmarshalJSON accepts what encoding/json and ParseID together
// would accept.
func encFuzzJSON[T idtValue](t *testing.T, k encKind[T], data []byte) {
	was := k.of(7, 7)
	direct := was
	if err := any(&direct).(idtPointer).UnmarshalJSON(data); err != nil && direct != was {
		t.Fatalf("UnmarshalJSON(%q): %v, but it sets %v", data, err, direct)
	}

	got := was
	err := json.Unmarshal(data, &got)
	if !json.Valid(data) {
		if err == nil {
			t.Fatalf("json.Unmarshal(%q) = %v, want an error", data, got)
		}
		return
	}
	var want T
	var wantErr error
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var v any
	must.Do(t, decoder.Decode(&v))
	switch v := v.(type) {
	case nil:
		want = was
	case string:
		want, wantErr = k.parseID(v)
	case json.Number:
		want, wantErr = k.parseID(v.String())
	default:
		wantErr = &firn.ParseError{}
	}
	if (err == nil) != (wantErr == nil) || err == nil && got != want || err != nil && got != was {
		t.Fatalf("json.Unmarshal(%q) = %v, %v, want %v, %v", data, got, err, want, wantErr)
	}
	if err != nil {
		if _, ok := err.(*firn.ParseError); !ok {
			t.Fatalf("json.Unmarshal(%q): error %T: %v", data, err, err)
		}
		return
	}
	out := must.Get(json.Marshal(got))(t)
	var back T
	if err := json.Unmarshal(out, &back); err != nil || back != got {
		t.Fatalf("json.Unmarshal(%s) = %v, %v, want %v", out, back, err, got)
	}
}

// encFuzzScan: Scan reads text as ParseID does, bytes of the ID's size as the
// ID, and the results of Value.
func encFuzzScan[T idtValue](t *testing.T, k encKind[T], data []byte, n int64) {
	was := k.of(7, 7)
	scan := func(src any) (T, error) {
		got := was
		err := any(&got).(idtPointer).Scan(src)
		if err != nil && got != was {
			t.Fatalf("Scan(%#v): %v, but it sets %v", src, err, got)
		}
		return got, err
	}
	want, wantErr := k.parseID(string(data))
	if got, err := scan(string(data)); (err == nil) != (wantErr == nil) || err == nil && got != want {
		t.Fatalf("Scan(%q) = %v, %v, want %v, %v", data, got, err, want, wantErr)
	}
	got, err := scan(data)
	if len(data) == k.bits/8 {
		if err != nil || k.number(got).Cmp(new(big.Int).SetBytes(data)) != 0 {
			t.Fatalf("Scan(%x) = %v, %v, want these bytes", data, got, err)
		}
	} else if (err == nil) != (wantErr == nil) || err == nil && got != want {
		t.Fatalf("Scan([]byte(%q)) = %v, %v, want %v, %v", data, got, err, want, wantErr)
	}
	if err == nil {
		if v, err := got.Value(); err == nil {
			if back, err := scan(v); err != nil || back != got {
				t.Fatalf("Scan(%v) = %v, %v, want %v", v, back, err, got)
			}
		} else if k.bits == 128 || k.number(got).BitLen() < 64 {
			t.Fatalf("Value of %v: %v", got, err)
		}
	}
	if got, err := scan(n); (err == nil) != (n >= 0) || err == nil && k.number(got).Cmp(big.NewInt(n)) != 0 {
		t.Fatalf("Scan(%d) = %v, %v", n, got, err)
	}
	if got, err := scan(uint64(n)); err != nil || k.number(got).Cmp(new(big.Int).SetUint64(uint64(n))) != 0 {
		t.Fatalf("Scan(uint64(%d)) = %v, %v", uint64(n), got, err)
	}
}
