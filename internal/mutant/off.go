//go:build !firnmutant

package mutant

// Enabled reports whether mistakes can be enabled in this build.
const Enabled = false

// On reports whether a mistake is enabled: never, in this build.
func On(Mutant) bool { return false }

// Set enables one mistake and disables all others. It does nothing in this
// build.
func Set(Mutant) {}
