// Package short shortens texts for errors, which programs keep and log.
package short

import "strings"

// Text returns a copy of the first 256 bytes of a text from outside.
func Text[T string | []byte](text T) string { return strings.Clone(string(text[:min(len(text), 256)])) }
