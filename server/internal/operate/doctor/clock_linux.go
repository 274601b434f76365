package doctor

import (
	"syscall"
	"time"
)

// clockState asks the kernel whether the clock is synchronized, and how
// exactly.
func clockState() (synced bool, bound time.Duration, err error) {
	const (
		timeError      = 5    // the state TIME_ERROR of adjtimex(2)
		unsynchronized = 0x40 // STA_UNSYNC
	)
	var t syscall.Timex
	state, err := syscall.Adjtimex(&t)
	if err != nil {
		return false, 0, err
	}
	return state != timeError && t.Status&unsynchronized == 0, time.Duration(t.Maxerror) * time.Microsecond, nil
}
