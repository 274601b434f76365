// Package veil hides what an ID tells. A time-ordered ID shows when it was made
// and, with others, how many there are. A veiled ID looks random, is as unique,
// and turns back into the ID with the key.
//
// It protects the time, the node and the order of IDs from those who do not
// have the key. It does not authorize: a veiled ID that leaks is as good as the
// ID, and anyone can send any number, which unveils to some ID. Look the ID up
// and check who may see it. It has no integrity: a wrong key or a made-up
// number gives another ID and not an error. Nor does it hide that two IDs are
// equal.
//
// The numeric form of a veiled ID does not say which key it was made with:
// there is one key for the life of a column. The text form has the number of
// its key, so keys can be replaced; see Keys.
//
// Veiling is FF1 of NIST SP 800-38G with AES, radix 2, over 53, 63 or 64 bits,
// or the 122 free bits of a UUID; docs/veil.md specifies it.
package veil

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/firnid/firn"
)

// A Cipher veils and unveils the IDs of one sequencer with one key. It is safe
// for concurrent use, and must be made by New.
type Cipher struct {
	ff1  *ff1
	bits int // 53, 63, 64 or 122
}

// New returns the Cipher of a sequencer, for a secret key of 16, 24 or 32
// random bytes. The same ID has different veiled IDs in two sequencers.
//
// Veiled IDs stay below 2^53 or 2^63 if all IDs of the layout do: they fit the
// same columns and numbers. Of the layouts with 128 bits, only uuidv7 can be
// veiled, into UUIDs of version 8.
func New(key []byte, sequencer string, l firn.Layout) (*Cipher, error) {
	if sequencer == "" {
		return nil, errors.New("veil: the name of the sequencer is empty")
	}
	bits, err := veiledBits(l)
	if err != nil {
		return nil, err
	}
	f, err := newFF1(key, 2, bits, []byte(sequencer+"/"+strconv.Itoa(bits)))
	return &Cipher{f, bits}, err
}

// veiledBits returns how many bits of a layout's IDs are veiled.
func veiledBits(l firn.Layout) (int, error) {
	switch {
	case l.Preset() == "uuidv7":
		return 122, nil
	case l.Bits() != 64:
		return 0, fmt.Errorf("veil: IDs of layout %s cannot be veiled: it must have 64 bits, or be uuidv7", l)
	}
	used := 64
	if top := l.Pieces()[0]; top.Field == firn.FieldZero {
		used -= top.Width
	}
	switch {
	case used <= 53:
		return 53, nil
	case used <= 63:
		return 63, nil
	}
	return 64, nil
}

// Veil returns the veiled form of an ID. It is an error if the ID is zero or
// beyond what the layout can hold.
func (c *Cipher) Veil(id firn.ID) (firn.ID, error) {
	return c.walk64(id, "ID", c.ff1.encrypt)
}

// Unveil returns the ID of a veiled one. With another key or sequencer, or for
// a number that was never veiled, it returns some other ID.
func (c *Cipher) Unveil(veiled firn.ID) (firn.ID, error) {
	return c.walk64(veiled, "veiled ID", c.ff1.decrypt)
}

// walk64 permutes the numbers from 1: it steps over 0, which is not an ID.
func (c *Cipher) walk64(id firn.ID, what string, step func(a, b uint64) (uint64, uint64)) (firn.ID, error) {
	if c.bits > 64 {
		return 0, fmt.Errorf("veil: %s %d has 64 bits, but IDs of this layout have 128", what, id)
	}
	most := ^firn.ID(0) >> (64 - c.bits)
	if id == 0 || id > most {
		return 0, fmt.Errorf("veil: %s %d is outside of 1 to %d", what, id, most)
	}
	low := c.bits - c.bits/2
	for v := uint64(id); ; {
		a, b := step(v>>low, v&(1<<low-1))
		if v = a<<low | b; v != 0 {
			return firn.ID(v), nil
		}
	}
}

// Veil128 returns the veiled form of a UUIDv7, a UUID of version 8.
func (c *Cipher) Veil128(id firn.ID128) (firn.ID128, error) {
	return c.walk128(id, "ID", 7, 8, c.ff1.encrypt)
}

// Unveil128 is Unveil for UUIDs. A UUID whose version is not 8 is an error.
func (c *Cipher) Unveil128(veiled firn.ID128) (firn.ID128, error) {
	return c.walk128(veiled, "veiled ID", 8, 7, c.ff1.decrypt)
}

func (c *Cipher) walk128(id firn.ID128, what string, from, to uint64,
	step func(a, b uint64) (uint64, uint64)) (firn.ID128, error) {
	hi, lo := id.Uint64s()
	switch {
	case c.bits != 122:
		return firn.ID128{}, fmt.Errorf("veil: %s %v has 128 bits, but IDs of this layout have 64", what, id)
	case lo>>62 != 2 || hi>>12&15 != from:
		return firn.ID128{}, fmt.Errorf("veil: %s %v is not a UUID of version %d", what, id, from)
	}
	// 60 and 62 free bits around version and variant, as halves of 61.
	top, low := hi>>16<<12|hi&0xfff, lo<<2>>2
	a, b := top<<1|low>>61, low&(1<<61-1)
	if a|b == 0 {
		return firn.ID128{}, fmt.Errorf("veil: %s %v has no bits besides version and variant", what, id)
	}
	for a, b = step(a, b); a|b == 0; {
		a, b = step(a, b)
	}
	top, low = a>>1, a<<61|b
	return firn.ID128FromUint64s(top>>12<<16|to<<12|top&0xfff, 2<<62|low<<2>>2), nil
}
