//go:build firnmutant

package mutant

import "sync/atomic"

// Enabled reports whether mistakes can be switched on in this build.
const Enabled = true

// current is the mistake that is switched on.
var current atomic.Int32

// On reports whether a mistake is switched on.
func On(m Mutant) bool { return Mutant(current.Load()) == m }

// Set switches on one mistake, and all others off.
func Set(m Mutant) { current.Store(int32(m)) }
