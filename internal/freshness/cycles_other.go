//go:build purego || (!amd64 && !arm64)

package freshness

// Cycles returns 0, because no counter of the processor is used here.
func Cycles() uint64 { return 0 }

func hasCycles() bool { return true }
