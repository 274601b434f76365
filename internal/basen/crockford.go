package basen

// AppendCrockford64 appends the 13 digits of v in Crockford's base 32 to b.
func AppendCrockford64(b []byte, v uint64) []byte {
	return append12(append(b, digitsCrockford[v>>60]), v)
}

// AppendCrockford128 appends the 26 digits of hi<<64 | lo in Crockford's base
// 32 to b, like a ULID.
func AppendCrockford128(b []byte, hi, lo uint64) []byte {
	b = append12(append(b, digitsCrockford[hi>>61]), hi>>1)
	return append12(append(b, digitsCrockford[(hi<<4|lo>>60)&31]), lo)
}

// append12 appends the 12 digits of the lowest 60 bits of v in Crockford's base
// 32.
func append12(b []byte, v uint64) []byte {
	a := &digitsCrockford
	return append(b,
		a[v>>55&31], a[v>>50&31], a[v>>45&31], a[v>>40&31], a[v>>35&31], a[v>>30&31],
		a[v>>25&31], a[v>>20&31], a[v>>15&31], a[v>>10&31], a[v>>5&31], a[v&31])
}

// ParseCrockford64 parses 13 digits in Crockford's base 32, as Parse64 does,
// but rejects any other number of digits.
func ParseCrockford64(s []byte) (v uint64, ok bool) {
	if len(s) != 13 {
		return 0, false
	}
	a := &valuesCrockford
	d0, d1, d2, d3, d4, d5, d6 := a[s[0]], a[s[1]], a[s[2]], a[s[3]], a[s[4]], a[s[5]], a[s[6]]
	d7, d8, d9, d10, d11, d12 := a[s[7]], a[s[8]], a[s[9]], a[s[10]], a[s[11]], a[s[12]]
	// The first digit has four bits; invalid characters have all eight set.
	if d0 > 15 || (d1|d2|d3|d4|d5|d6|d7|d8|d9|d10|d11|d12) > 31 {
		return 0, false
	}
	return uint64(d0)<<60 | uint64(d1)<<55 | uint64(d2)<<50 | uint64(d3)<<45 | uint64(d4)<<40 |
		uint64(d5)<<35 | uint64(d6)<<30 | uint64(d7)<<25 | uint64(d8)<<20 | uint64(d9)<<15 |
		uint64(d10)<<10 | uint64(d11)<<5 | uint64(d12), true
}

// ParseCrockford128 parses 26 digits in Crockford's base 32, as Parse128 does,
// but rejects any other number of digits.
func ParseCrockford128(s []byte) (hi, lo uint64, ok bool) {
	if len(s) != 26 {
		return 0, 0, false
	}
	a := &valuesCrockford
	top := a[s[0]] // three bits
	h, ok1 := parse12((*[12]byte)(s[1:]))
	mid := a[s[13]]
	l, ok2 := parse12((*[12]byte)(s[14:]))
	if top > 7 || mid > 31 || !ok1 || !ok2 {
		return 0, 0, false
	}
	return uint64(top)<<61 | h<<1 | uint64(mid)>>4, uint64(mid)<<60 | l, true
}

// parse12 parses 12 digits in Crockford's base 32.
func parse12(s *[12]byte) (v uint64, ok bool) {
	a := &valuesCrockford
	d0, d1, d2, d3, d4, d5 := a[s[0]], a[s[1]], a[s[2]], a[s[3]], a[s[4]], a[s[5]]
	d6, d7, d8, d9, d10, d11 := a[s[6]], a[s[7]], a[s[8]], a[s[9]], a[s[10]], a[s[11]]
	if d0|d1|d2|d3|d4|d5|d6|d7|d8|d9|d10|d11 > 31 { // invalid characters have all eight bits set
		return 0, false
	}
	return uint64(d0)<<55 | uint64(d1)<<50 | uint64(d2)<<45 | uint64(d3)<<40 | uint64(d4)<<35 |
		uint64(d5)<<30 | uint64(d6)<<25 | uint64(d7)<<20 | uint64(d8)<<15 | uint64(d9)<<10 |
		uint64(d10)<<5 | uint64(d11), true
}
