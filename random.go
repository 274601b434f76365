package firn

import (
	"math/bits"
	"math/rand/v2"
)

// randomWide returns 128 bits from the runtime's generator (ChaCha8, seeded by
// the system). Nothing depends on them: IDs are unique by time, sequence and
// node, and random bits only fill the random parts of UUIDs and ULIDs.
func randomWide() wide { return wide{rand.Uint64(), rand.Uint64()} }

// mix derives the random bits of a slot from its batch's seed.
func mix(seed wide, slot uint64) wide {
	return wide{splitMix64(seed.hi + slot*0x9e3779b97f4a7c15), mixLow(seed, slot)}
}

// mixLow returns the lower half of mix.
func mixLow(seed wide, slot uint64) uint64 {
	return splitMix64(seed.lo ^ bits.Reverse64(slot*0xd1342543de82ef95))
}

// splitMix64 is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
func splitMix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
