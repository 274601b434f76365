//go:build !purego

package freshness

// Cycles is the virtual counter, which the architecture keeps at one rate.
func Cycles() uint64

func hasCycles() bool { return true }
