package sequencer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
)

// in2026 runs f in a bubble whose clock shows a day in 2026.
func in2026(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// sixteen has 16 node IDs.
var sixteen = firn.MustParseLayout("bits=time:44.node:4.seq:4,unit=1ms,epoch=0")
