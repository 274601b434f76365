//go:build purego || (!amd64 && !arm64)

package main

import "time"

var cyclesStart = time.Now()

// cycles is the monotonic clock, which the library reads where it reads no
// counter of the processor.
func cycles() uint64 { return uint64(time.Since(cyclesStart)) }
