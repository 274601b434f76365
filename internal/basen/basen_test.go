package basen

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// slow parses s digit by digit.
func slow(s []byte, x Base, width int) (hi, lo uint64, ok bool) {
	if len(s) == 0 || len(s) > width {
		return 0, 0, false
	}
	// In base 2^16, so that no overflow goes unnoticed.
	var limbs [9]uint64
	for _, c := range s {
		i := strings.IndexByte(x.Alphabet(), c)
		if i < 0 && int(x.radix.base) <= 36 {
			i = strings.Index(strings.ToUpper(x.Alphabet()), strings.ToUpper(string(rune(c))))
			if c >= 0x80 {
				i = -1
			}
		}
		if i < 0 {
			return 0, 0, false
		}
		carry := uint64(i)
		for j := range limbs {
			carry += limbs[j] * x.radix.base
			limbs[j] = carry & 0xffff
			carry >>= 16
		}
		if limbs[8] != 0 {
			return 0, 0, false
		}
	}
	for j := range 4 {
		lo |= limbs[j] << (16 * j)
		hi |= limbs[4+j] << (16 * j)
	}
	return hi, lo, true
}

// TestQuickWays: the fast functions read and write the same as the general
// ones, even for almost valid texts.
func TestQuickWays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	near := []byte("0/:9@A[Z`a{z-GgFfIiLlOoUu1\x00\x7f\x80\xb0\xff")
	for range 50_000 {
		v := r.Uint64() >> r.IntN(64)
		if r.IntN(8) == 0 {
			v = ^uint64(0) - r.Uint64N(3)
		}
		for _, test := range []struct {
			name  string
			base  Base
			text  []byte
			exact int // the only number of digits that parse takes, or 0
			parse func([]byte) (uint64, bool)
		}{
			{"decimal", Boundary(10), AppendDec(nil, v), 0, Boundary(10).Parse64},
			{"base 62", Boundary(62), Boundary(62).Append64(nil, v, r.IntN(2) == 0), 0, Boundary(62).Parse64},
			{"base 58", Bitcoin(), Bitcoin().Append64(nil, v, r.IntN(2) == 0), 0, Bitcoin().Parse64},
			{"base 57", Boundary(57), Boundary(57).Append64(nil, v, false), 0, Boundary(57).Parse64},
			{"hex", Hex(), Hex().Append64(nil, v, true), 16, ParseHex64},
			{"base 32", Crockford(), Crockford().Append64(nil, v, true), 13, ParseCrockford64},
		} {
			if _, got, ok := slow(test.text, test.base, test.base.Width64()); !ok || got != v {
				t.Fatalf("%s: %d is written %q, which is %d", test.name, v, test.text, got)
			}
			text := bytes.Clone(test.text)
			switch r.IntN(5) {
			case 0: // unchanged
			case 1:
				text[r.IntN(len(text))] = near[r.IntN(len(near))]
			case 4:
				text = text[1:]
			case 2:
				text = append(text, near[r.IntN(len(near))])
			case 3:
				text[0] = near[r.IntN(len(near))]
			}
			hi, want, wantOK := slow(text, test.base, test.base.Width64())
			if hi != 0 || test.exact != 0 && len(text) != test.exact {
				wantOK = false
			}
			if got, ok := test.parse(text); ok != wantOK || ok && got != want {
				t.Fatalf("%s: %q is read as %d, %v, want %d, %v", test.name, text, got, ok, want, wantOK)
			}
		}

		hi := r.Uint64()
		text := AppendCrockford128(nil, hi, v)
		if r.IntN(2) == 0 {
			text[r.IntN(len(text))] = near[r.IntN(len(near))]
		}
		wantHi, wantLo, wantOK := slow(text, Crockford(), 26)
		if gotHi, gotLo, ok := ParseCrockford128(text); ok != wantOK || ok && (gotHi != wantHi || gotLo != wantLo) {
			t.Fatalf("base 32: %q is read as %x %x, %v, want %x %x, %v", text, gotHi, gotLo, ok, wantHi, wantLo, wantOK)
		}
		text = AppendUUID(nil, hi, v)
		if r.IntN(2) == 0 {
			text[r.IntN(len(text))] = near[r.IntN(len(near))]
		}
		wantHi, wantLo, wantOK = slow(bytes.ReplaceAll(text, []byte("-"), nil), Hex(), 32)
		wantOK = wantOK && bytes.Count(text, []byte("-")) == 4 && text[8]+text[13]+text[18]+text[23] == 4*'-'
		if gotHi, gotLo, ok := ParseUUID(text); ok != wantOK || ok && (gotHi != wantHi || gotLo != wantLo) {
			t.Fatalf("uuid: %q is read as %x %x, %v, want %x %x, %v", text, gotHi, gotLo, ok, wantHi, wantLo, wantOK)
		}
	}
}
