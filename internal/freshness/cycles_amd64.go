//go:build !purego

package freshness

import "sync"

// Cycles returns the time-stamp counter.
func Cycles() uint64

func cpuid(leaf uint32) (eax, edx uint32)

// hasCycles reports whether the time-stamp counter has a constant rate in all
// states of the processor: bit 8 of EDX in leaf 0x80000007 (Intel SDM volume 3,
// 19.17.1; AMD APM volume 3, E.4.6).
var hasCycles = sync.OnceValue(func() bool {
	const most, power = 0x80000000, 0x80000007
	if last, _ := cpuid(most); last < power {
		return false
	}
	_, edx := cpuid(power)
	return edx&(1<<8) != 0
})
