package freshness

import "time"

// start is the time from which elapsed counts.
var start = time.Now()

// elapsed returns nanoseconds of the runtime's monotonic clock.
func elapsed() uint64 { return uint64(time.Since(start)) }
