package firn_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/firnid/firn"
)

func TestParseID128Errors(t *testing.T) {
	for _, test := range []struct {
		text string
		pos  int
		want []string
	}{
		{"", -1, []string{"empty", "128-bit ID has 1 to 39 digits"}},
		{"-1", 0, []string{"'-' at offset 0", "IDs have none"}},
		{"-0000000-0000-0000-0000-000000000000", 0, []string{"'-' at offset 0"}},
		{"1-2", 1, []string{"'-' at offset 1", "8-4-4-4-12"}},
		{"00000000-0000-0000-0000-00000000000", -1, []string{"35 characters", "36 characters"}},
		{"00000000-0000-0000-0000-0000000000000", -1, []string{"37 characters"}},
		{"00000000-0000-0000-0000-000000000000 ", -1, []string{"37 characters"}},
		{"00000000-0000-0000-0000-00000000000G", 35, []string{"'G' at offset 35", "hexadecimal"}},
		{"000000000000-0000-0000-0000-00000000", 8, []string{"'0' at offset 8", "should be '-'"}},
		{"{00000000-0000-0000-0000-000000000000}", 0, []string{"'{' at offset 0"}},
		{"urn:uuid:00000000-0000-0000-0000-000000000000", 0, []string{"'u' at offset 0"}},
		{"0x0000000-0000-0000-0000-000000000000", 1, []string{"'x' at offset 1"}},
		{"0198f3a05b7c7f00a1b2c3d4e5f60718", 4, []string{"'f' at offset 4", "begins with 0x"}},
		{"0x", -1, []string{"nothing follows the 0x", "1 to 32 digits"}},
		{"0x1g", 3, []string{"'g' at offset 3"}},
		{"0x123456789012345678901234567890123", -1, []string{"33 digits", "at most 32"}},
		{"340282366920938463463374607431768211456", -1, []string{"more than the greatest 128-bit ID, 340282366920938463463374607431768211455"}},
		{strings.Repeat("9", 39), -1, []string{"more than the greatest 128-bit ID"}},
		{strings.Repeat("0", 40), -1, []string{"40 digits", "at most 39"}},
		{strings.Repeat("0", 35) + " ", 35, []string{"' ' at offset 35", "decimal"}},
	} {
		id, err := firn.ParseID128(test.text)
		if !id.IsZero() {
			t.Errorf("ParseID128(%q) = %v with an error, want zero", test.text, id)
		}
		encCheckError(t, err, "ID128", test.text, test.pos, test.want...)
	}
}

func TestID128Numbers(t *testing.T) {
	// An ID of Boundary, in its own base 62 and as a UUID.
	id, err := firn.ParseID128("31359464925324684491273709518848")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := id.String(), "0000018b-cfe5-6800-ffff-ffffffff8000"; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
	if got, want := string(firn.Base62.Append128(nil, id)), "AboKHPfZvePUStfgB6"; got != want {
		t.Errorf("base 62 = %s, want %s", got, want)
	}
	hi, lo := id.Uint64s()
	if hi != 0x18bcfe56800 || lo != 0xffffffffffff8000 {
		t.Errorf("Uint64s = %#x, %#x", hi, lo)
	}
	if got := firn.ID128FromUint64s(hi, lo); got != id {
		t.Errorf("ID128FromUint64s(%#x, %#x) = %v, want %v", hi, lo, got, id)
	}

	// A UUID type of another package.
	type UUID [16]byte
	if u := UUID(id); firn.ID128(u) != id {
		t.Errorf("converted there and back: %v, want %v", firn.ID128(u), id)
	}

	for _, test := range []struct {
		a, b firn.ID128
		want int
	}{
		{firn.ID128{}, firn.ID128{}, 0},
		{firn.ID128FromUint64s(0, 1), firn.ID128{}, 1},
		{firn.ID128FromUint64s(0, math.MaxUint64), firn.ID128FromUint64s(1, 0), -1},
		{firn.ID128FromUint64s(1<<63, 0), firn.ID128FromUint64s(1<<63-1, math.MaxUint64), 1}, // unsigned
		{firn.ID128FromUint64s(1, 1<<63), firn.ID128FromUint64s(1, 1<<63-1), 1},
	} {
		if got := test.a.Compare(test.b); got != test.want {
			t.Errorf("%v.Compare(%v) = %d, want %d", test.a, test.b, got, test.want)
		}
		if got := test.b.Compare(test.a); got != -test.want {
			t.Errorf("%v.Compare(%v) = %d, want %d", test.b, test.a, got, -test.want)
		}
	}
}

func TestID128SQL(t *testing.T) {
	id := firn.ID128FromUint64s(1, 2)
	if v, err := id.Value(); err != nil || v != "00000000-0000-0001-0000-000000000002" {
		t.Errorf("Value = %v, %v, want its text", v, err)
	}
	for _, test := range []struct {
		src  any
		want firn.ID128
	}{
		{nil, firn.ID128{}},
		{int64(5), firn.ID128FromUint64s(0, 5)},
		{uint64(math.MaxUint64), firn.ID128FromUint64s(0, math.MaxUint64)},
		{"18446744073709551618", id},
		{[]byte("18446744073709551618"), id},
		{[]byte("00000000-0000-0001-0000-000000000002"), id},
		{[]byte("1234567812345678"), firn.ID128FromUint64s(0x3132333435363738, 0x3132333435363738)}, // 16 bytes: the ID itself
		{[]byte("12345678"), firn.ID128FromUint64s(0, 12345678)},                                    // 8 bytes: text
	} {
		got := firn.ID128FromUint64s(9, 9)
		if err := got.Scan(test.src); err != nil || got != test.want {
			t.Errorf("Scan(%v) = %v, %v, want %v", test.src, got, err, test.want)
		}
	}
	var bad *firn.RangeError
	if err := id.Scan(int64(-5)); !errors.As(err, &bad) || bad.Field != "ID128" || bad.Max != encKindMax(encKind128) {
		t.Errorf("Scan(-5): error %v, want a *RangeError up to %s", err, encKindMax(encKind128))
	}
}

func TestID128JSON(t *testing.T) {
	var got struct{ A, B, C, D firn.ID128 }
	data := []byte(`{"A": 340282366920938463463374607431768211455, "B": "340282366920938463463374607431768211455",
		"C": "FFFFFFFF-ffff-ffff-ffff-ffffffffffff", "D": "0xffffffffffffffffffffffffffffffff"}`)
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := firn.ID128FromUint64s(math.MaxUint64, math.MaxUint64)
	if got.A != want || got.B != want || got.C != want || got.D != want {
		t.Errorf("json.Unmarshal(%s) = %v", data, got)
	}
	for _, s := range []string{"340282366920938463463374607431768211456", "1.0", "1e2", "-1"} {
		var id firn.ID128
		if err := json.Unmarshal([]byte(s), &id); err == nil {
			t.Errorf("json.Unmarshal(%s) = %v, want an error", s, id)
		}
	}
}
