//go:build purego || (!amd64 && !arm64)

package freshness

// Cycles returns elapsed, because no counter of the processor is used here.
func Cycles() uint64 { return elapsed() }

func hasCycles() bool { return true }
