//go:build !purego && (amd64 || arm64)

package bench

// cycles returns the processor's counter, like the library, whose internal
// packages cannot be imported here.
func cycles() uint64

// clockSource is what Next reads to know whether its last reading of the clock
// is still fresh.
const clockSource = "counter"
