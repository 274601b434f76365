//go:build firnmutant

package freshness

import "sync/atomic"

// Mistakable reports whether mistakes can be switched on in this build.
const Mistakable = true

var current atomic.Int32

func made(m Mistake) bool { return Mistake(current.Load()) == m }

// SetMistake switches on one mistake and all others off.
func SetMistake(m Mistake) { current.Store(int32(m)) }
