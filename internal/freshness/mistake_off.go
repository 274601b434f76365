//go:build !firnmutant

package freshness

// Mistakable reports whether mistakes can be switched on in this build.
const Mistakable = false

func made(Mistake) bool { return false }

// SetMistake switches on one mistake and all others off. It does nothing in this
// build.
func SetMistake(Mistake) {}
