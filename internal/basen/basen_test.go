package basen

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// all returns every Base, with a name for messages.
func all() map[string]Base {
	m := map[string]Base{"hex": Hex(), "crockford": Crockford(), "bitcoin": Bitcoin()}
	for n := Min; n <= Max; n++ {
		m[fmt.Sprint(n)] = Boundary(n)
	}
	return m
}

// numbers returns 128-bit numbers at which digits, chunks and words of base n
// change, and some others.
func numbers(n int) [][2]uint64 {
	var list [][2]uint64
	add := func(x *big.Int) {
		if x.Sign() >= 0 && x.BitLen() <= 128 {
			lo := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64))
			list = append(list, [2]uint64{new(big.Int).Rsh(x, 64).Uint64(), lo.Uint64()})
		}
	}
	for _, base := range []int64{2, int64(n)} {
		for p := big.NewInt(1); p.BitLen() <= 129; p = new(big.Int).Mul(p, big.NewInt(base)) {
			for d := int64(-2); d <= 2; d++ {
				add(new(big.Int).Add(p, big.NewInt(d)))
				add(new(big.Int).Add(new(big.Int).Mul(p, big.NewInt(base-1)), big.NewInt(d)))
			}
		}
	}
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for range 2000 {
		list = append(list,
			[2]uint64{rnd.Uint64() >> rnd.UintN(64), rnd.Uint64()},
			[2]uint64{0, rnd.Uint64() >> rnd.UintN(64)})
	}
	return list
}

// bigText returns the text of v in the base of x, computed by math/big.
func bigText(x Base, v *big.Int) string {
	const from = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" // the digits of math/big
	alphabet := x.Alphabet()
	return strings.Map(func(r rune) rune {
		return rune(alphabet[strings.IndexRune(from, r)])
	}, v.Text(x.N()))
}

func pad(x Base, s string, w int) string {
	return strings.Repeat(x.Alphabet()[:1], w-len(s)) + s
}

func TestAgainstBig(t *testing.T) {
	for name, x := range all() {
		for _, v := range numbers(x.N()) {
			hi, lo := v[0], v[1]
			n := new(big.Int).SetUint64(hi)
			n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(lo))
			want := bigText(x, n)
			for _, text := range []string{want, pad(x, want, x.Width128())} {
				padded := len(text) != len(want) || len(text) == x.Width128()
				if got := string(x.Append128(nil, hi, lo, padded)); got != text {
					t.Fatalf("base %s: Append128(%v, %t) = %s, want %s", name, n, padded, got, text)
				}
				gotHi, gotLo, ok := x.Parse128([]byte(text))
				if !ok || gotHi != hi || gotLo != lo {
					t.Fatalf("base %s: Parse128(%s) = %#x, %#x, %t, want %#x, %#x", name, text, gotHi, gotLo, ok, hi, lo)
				}
			}
			if got, ok := x.Parse64([]byte(want)); ok != (hi == 0) || ok && got != lo {
				t.Fatalf("base %s: Parse64(%s) = %#x, %t, want %#x, %t", name, want, got, ok, lo, hi == 0)
			}
			if hi != 0 {
				continue
			}
			if got := string(x.Append64(nil, lo, false)); got != want {
				t.Fatalf("base %s: Append64(%v, false) = %s, want %s", name, n, got, want)
			}
			text := pad(x, want, x.Width64())
			if got := string(x.Append64(nil, lo, true)); got != text {
				t.Fatalf("base %s: Append64(%v, true) = %s, want %s", name, n, got, text)
			}
			if got, ok := x.Parse64([]byte(text)); !ok || got != lo {
				t.Fatalf("base %s: Parse64(%s) = %#x, %t, want %#x", name, text, got, ok, lo)
			}
		}
	}
}

// One more than the greatest number has the same number of digits in most
// bases, and must be rejected in all of them.
func TestOverflow(t *testing.T) {
	for name, x := range all() {
		for _, size := range []uint{64, 128} {
			over := new(big.Int).Lsh(big.NewInt(1), size)
			last := new(big.Int).Exp(big.NewInt(int64(x.N())), big.NewInt(int64(x.Width64())), nil)
			if size == 128 {
				last.Exp(big.NewInt(int64(x.N())), big.NewInt(int64(x.Width128())), nil)
			}
			last.Sub(last, big.NewInt(1))
			for _, v := range []*big.Int{over, last} {
				if uint(v.BitLen()) <= size {
					continue // a power of two: the greatest text is the greatest number
				}
				text := []byte(bigText(x, v))
				ok := false
				if size == 64 {
					_, ok = x.Parse64(text)
				} else {
					_, _, ok = x.Parse128(text)
				}
				if ok {
					t.Errorf("base %s: Parse%d(%s) = true, want an overflow", name, size, text)
				}
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, x := range all() {
		alphabet := x.Alphabet()
		refused := []string{"", strings.Repeat(alphabet[:1], x.Width128()+1)}
		for c := range 256 {
			if !x.Has(byte(c)) {
				refused = append(refused, string([]byte{byte(c)}), string([]byte{alphabet[0], byte(c), alphabet[0]}))
			}
		}
		for _, s := range refused {
			if v, ok := x.Parse64([]byte(s)); ok {
				t.Errorf("base %s: Parse64(%q) = %d, want it refused", name, s, v)
			}
			if hi, lo, ok := x.Parse128([]byte(s)); ok {
				t.Errorf("base %s: Parse128(%q) = %d, %d, want it refused", name, s, hi, lo)
			}
		}
		s := strings.Repeat(alphabet[:1], x.Width64()+1)
		if v, ok := x.Parse64([]byte(s)); ok {
			t.Errorf("base %s: Parse64(%q) = %d, want it refused", name, s, v)
		}
	}
}

// TestFast compares the functions for one base with those for all.
func TestFast(t *testing.T) {
	for _, v := range numbers(32) {
		hi, lo := v[0], v[1]
		if got, want := AppendHex64(nil, lo), Hex().Append64(nil, lo, true); string(got) != string(want) {
			t.Fatalf("AppendHex64(%#x) = %s, want %s", lo, got, want)
		}
		if got, want := AppendCrockford64(nil, lo), Crockford().Append64(nil, lo, true); string(got) != string(want) {
			t.Fatalf("AppendCrockford64(%#x) = %s, want %s", lo, got, want)
		}
		text := Crockford().Append64(nil, lo, true)
		if got, ok := ParseCrockford64(text); !ok || got != lo {
			t.Fatalf("ParseCrockford64(%s) = %#x, %t, want %#x", text, got, ok, lo)
		}
		if got, ok := ParseCrockford64([]byte(strings.ToLower(string(text)))); !ok || got != lo {
			t.Fatalf("ParseCrockford64(%s) in lower case = %#x, %t, want %#x", text, got, ok, lo)
		}
		if got, want := AppendCrockford128(nil, hi, lo), Crockford().Append128(nil, hi, lo, true); string(got) != string(want) {
			t.Fatalf("AppendCrockford128(%#x, %#x) = %s, want %s", hi, lo, got, want)
		}
		h := fmt.Sprintf("%016x%016x", hi, lo)
		want := strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
		if got := AppendUUID(nil, hi, lo); string(got) != want {
			t.Fatalf("AppendUUID(%#x, %#x) = %s, want %s", hi, lo, got, want)
		}
	}
}

// TestTables computes the tables again.
func TestTables(t *testing.T) {
	width := func(n, size int) uint8 {
		limit := new(big.Int).Lsh(big.NewInt(1), uint(size))
		w := uint8(0)
		for p := big.NewInt(1); p.Cmp(limit) < 0; p.Mul(p, big.NewInt(int64(n))) {
			w++
		}
		return w
	}
	for n, got := range radices {
		if n < Min || n > Max {
			if got != (radix{}) {
				t.Errorf("radices[%d] = %v, want none", n, got)
			}
			continue
		}
		want := radix{n: uint64(n), w64: width(n, 64), w128: width(n, 128), chunk: 1}
		for want.chunk*want.n <= 1<<32 {
			want.chunk *= want.n
			want.k++
		}
		var rest uint64
		if want.frac, rest = bits.Div64(1, 0, want.chunk); rest != 0 {
			want.frac++
		}
		if bits.OnesCount(uint(n)) == 1 {
			want.shift = uint8(bits.TrailingZeros(uint(n)))
		} else {
			want.pair = want.chunk * want.chunk
			want.recip = math.MaxUint64 / want.pair
		}
		if got != want {
			t.Errorf("radices[%d] = %v, want %v", n, got, want)
		}
	}

	for name, x := range all() {
		alphabet := x.Alphabet()
		if !slices.IsSorted([]byte(alphabet)) || len(slices.Compact([]byte(alphabet))) != x.N() {
			t.Errorf("base %s: alphabet %q is not in ASCII order, or has a digit twice", name, alphabet)
		}
		for c := range 256 {
			want := strings.IndexByte(alphabet, byte(c))
			if want < 0 && (x.N() <= 36) {
				// Either case, if only one is a digit.
				want = strings.IndexByte(strings.ToLower(alphabet), byte(c))
				if want < 0 {
					want = strings.IndexByte(strings.ToUpper(alphabet), byte(c))
				}
			}
			if got := x.Has(byte(c)); got != (want >= 0) {
				t.Errorf("base %s: Has(%q) = %t, want %t", name, rune(c), got, want >= 0)
			}
			if want >= 0 && int(x.values[c]) != want {
				t.Errorf("base %s: value of %q = %d, want %d", name, rune(c), x.values[c], want)
			}
		}
	}
}

// Every byte in every place, and every length.
func TestParseCrockford64Refuses(t *testing.T) {
	x := Crockford()
	for i := range 13 {
		for c := range 256 {
			text := []byte("0000000000000")
			text[i] = byte(c)
			want, wantOK := x.Parse64(text)
			if got, ok := ParseCrockford64(text); got != want || ok != wantOK {
				t.Errorf("ParseCrockford64(%q) = %#x, %t, want %#x, %t", text, got, ok, want, wantOK)
			}
		}
	}
	for n := range 20 {
		text := []byte(strings.Repeat("0", n))
		if _, ok := ParseCrockford64(text); ok != (n == 13) {
			t.Errorf("ParseCrockford64(%q) = %t", text, ok)
		}
	}
}

func TestBoundaryPanics(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 63, 64, math.MaxInt32} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Boundary(%d) did not panic", n)
				}
			}()
			Boundary(n)
		}()
	}
}
