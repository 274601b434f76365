//go:build firnmutant

package mutant

import "sync/atomic"

// Enabled reports whether mistakes can be enabled in this build.
const Enabled = true

// current is the mistake that is enabled.
var current atomic.Int32

// On reports whether a mistake is enabled.
func On(m Mutant) bool { return Mutant(current.Load()) == m }

// Set enables one mistake and disables all others.
func Set(m Mutant) { current.Store(int32(m)) }
