package firn_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/firnid/firn"
)

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
}
