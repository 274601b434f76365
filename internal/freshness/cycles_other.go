//go:build purego || (!amd64 && !arm64)

package freshness

// Cycles is elapsed where no counter of the processor is read.
func Cycles() uint64 { return elapsed() }

func hasCycles() bool { return true }
