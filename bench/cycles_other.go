//go:build purego || (!amd64 && !arm64)

package bench

import "time"

var cyclesStart = time.Now()

// cycles returns the monotonic clock, half of what the library reads if it uses
// no counter of the processor.
func cycles() uint64 { return uint64(time.Since(cyclesStart)) }

const clockSource = "clock"
