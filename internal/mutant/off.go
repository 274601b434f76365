//go:build !firnmutant

package mutant

// Enabled reports whether mistakes can be switched on in this build.
const Enabled = false

// On reports whether a mistake is switched on: never, in this build.
func On(Mutant) bool { return false }

// Set switches on one mistake, and all others off. It does nothing in this
// build.
func Set(Mutant) {}
