package veil

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// The samples of FF1 that NIST publishes with SP 800-38G.
func TestNIST(t *testing.T) {
	const (
		key  = "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94"
		ten  = "39383736353433323130"
		mix  = "3737373770717273373737"
		a10  = "0123456789"
		a36  = "0123456789abcdefghi"
		base = "0123456789abcdefghijklmnopqrstuvwxyz"
	)
	for i, row := range []struct {
		keyBytes    int
		radix       uint64
		tweak       string
		plain, want string
	}{
		{16, 10, "", a10, "2433477484"}, {16, 10, ten, a10, "6124200773"}, {16, 36, mix, a36, "a9tv40mll9kdu509eum"},
		{24, 10, "", a10, "2830668132"}, {24, 10, ten, a10, "2496655549"}, {24, 36, mix, a36, "xbj3kv35jrawxv32ysr"},
		{32, 10, "", a10, "6657667009"}, {32, 10, ten, a10, "1001623463"}, {32, 36, mix, a36, "xs8a0azh2avyalyzuwd"},
	} {
		k, _ := hex.DecodeString(key)
		tweak, _ := hex.DecodeString(row.tweak)
		f := must.Get(newFF1(k[:row.keyBytes], row.radix, len(row.plain), tweak))(t)
		u := len(row.plain) / 2
		number := func(s string) (v uint64) {
			for _, c := range s {
				v = v*row.radix + uint64(strings.IndexRune(base, c))
			}
			return v
		}
		text := func(v uint64, n int) (s string) {
			for range n {
				s, v = string(base[v%row.radix])+s, v/row.radix
			}
			return s
		}
		a, b := f.encrypt(number(row.plain[:u]), number(row.plain[u:]))
		if got := text(a, u) + text(b, len(row.plain)-u); got != row.want {
			t.Errorf("sample %d: %s, want %s", i+1, got, row.want)
		}
		a, b = f.decrypt(a, b)
		if got := text(a, u) + text(b, len(row.plain)-u); got != row.plain {
			t.Errorf("sample %d: decrypted to %s, want %s", i+1, got, row.plain)
		}
	}
}

// 10,000 results of Bouncy Castle at radix 2, which testdata/Cases.java wrote.
func TestBouncyCastle(t *testing.T) {
	all := must.Get(os.ReadFile("testdata/bouncycastle.bin"))(t)
	n := 0
	for ; len(all) > 0; n++ {
		width := []int{53, 63, 64, 122}[n%4]
		key := sha256.Sum256(fmt.Append(nil, "key ", n))
		f := must.Get(newFF1(key[:16+8*(n%3)], 2, width, fmt.Appendf(nil, "orders-%d/%d", n, width)))(t)
		in := sha256.Sum256(fmt.Append(nil, "id ", n))
		hi, lo := binary.BigEndian.Uint64(in[16:]), binary.BigEndian.Uint64(in[24:])
		a, b := halves(hi, lo, width)

		want := [2]uint64{}
		if width > 64 {
			want[0], all = binary.BigEndian.Uint64(all), all[8:]
		}
		want[1], all = binary.BigEndian.Uint64(all), all[8:]
		wantA, wantB := halves(want[0], want[1], width)

		x, y := f.encrypt(a, b)
		if x != wantA || y != wantB {
			t.Fatalf("case %d: %x %x, want %x %x", n, x, y, wantA, wantB)
		}
		if x, y = f.decrypt(x, y); x != a || y != b {
			t.Fatalf("case %d: decrypted to %x %x, want %x %x", n, x, y, a, b)
		}
	}
	if n != 10_000 {
		t.Errorf("%d cases, want 10,000", n)
	}
}

// halves returns the upper width/2 bits, and the others, of the low bits of a
// number.
func halves(hi, lo uint64, width int) (a, b uint64) {
	low := width - width/2
	rest := hi<<(64-low) | lo>>low
	mask := func(n int) uint64 { return 1<<n - 1 }
	return rest & mask(width/2), lo & mask(low)
}
