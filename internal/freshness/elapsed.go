package freshness

import "time"

// start is when the counter of elapsed began.
var start = time.Now()

// elapsed counts the nanoseconds of the runtime's monotonic clock.
func elapsed() uint64 { return uint64(time.Since(start)) }
