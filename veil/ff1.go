package veil

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// An ff1 is FF1 of NIST SP 800-38G for numbers of a fixed number of digits in
// one radix, with one key and tweak. A number is given as two halves: the first
// n/2 digits, rounded down, and the others. It is safe for concurrent use.
type ff1 struct {
	block cipher.Block
	mod   [2]uint64 // radix to the power of the number of digits, of either half
	bytes int       // of a half, in a block
	out   uint      // bits of a round's block that are used

	// Of the message that a round hashes only the last block changes. state is
	// the hash of the others, and last that block without round and number.
	state, last [16]byte
}

// newFF1 makes the FF1 of numbers of n digits. A half must fit 63 bits.
func newFF1(key []byte, radix uint64, n int, tweak []byte) (*ff1, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("veil: the key has %d bytes: use 16, 24 or 32", len(key))
	}
	u := n / 2
	f := &ff1{block: block, mod: [2]uint64{1, 1}}
	for i := range n {
		f.mod[min(i/u, 1)] *= radix
	}
	f.bytes = (bits.Len64(f.mod[1]-1) + 7) / 8
	f.out = uint(8 * (4*((f.bytes+3)/4) + 4))

	p := []byte{1, 2, 1, byte(radix >> 16), byte(radix >> 8), byte(radix), 10, byte(u)}
	p = binary.BigEndian.AppendUint32(p, uint32(n))
	p = binary.BigEndian.AppendUint32(p, uint32(len(tweak)))
	p = append(p, tweak...)
	p = append(p, make([]byte, 15-(len(tweak)+f.bytes)%16+1+f.bytes)...)
	for ; len(p) > 16; p = p[16:] {
		for i := range f.state {
			f.state[i] ^= p[i]
		}
		block.Encrypt(f.state[:], f.state[:])
	}
	f.last = [16]byte(p)
	return f, nil
}

// round returns what round i adds to a half, modulo m. other is the other half,
// and buf is scratch space.
func (f *ff1) round(buf *[16]byte, i byte, other, m uint64) uint64 {
	hi, lo := uint64(i), other // the number of the round before the half
	if f.bytes < 8 {
		hi, lo = 0, uint64(i)<<(8*f.bytes)|other
	}
	word := func(b *[16]byte, at int) uint64 { return binary.BigEndian.Uint64(b[at:]) }
	binary.BigEndian.PutUint64(buf[:8], word(&f.last, 0)^word(&f.state, 0)^hi)
	binary.BigEndian.PutUint64(buf[8:], word(&f.last, 8)^word(&f.state, 8)^lo)
	f.block.Encrypt(buf[:], buf[:])
	hi, lo = word(buf, 0), word(buf, 8)
	cut := 128 - f.out // of 0 to 64
	return bits.Rem64(hi>>cut, lo>>cut|hi<<(64-cut), m)
}

func (f *ff1) encrypt(a, b uint64) (uint64, uint64) {
	buf := new([16]byte)
	for i := range byte(10) {
		m := f.mod[i%2]
		a, b = b, (a+f.round(buf, i, b, m))%m
	}
	return a, b
}

func (f *ff1) decrypt(a, b uint64) (uint64, uint64) {
	buf := new([16]byte)
	for i := byte(9); i < 10; i-- {
		m := f.mod[i%2]
		a, b = (b+m-f.round(buf, i, a, m))%m, a
	}
	return a, b
}
