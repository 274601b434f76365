//go:build !purego

package freshness

// Cycles returns the virtual counter, which has a constant rate by the
// architecture.
func Cycles() uint64

func hasCycles() bool { return true }
