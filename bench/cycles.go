//go:build !purego && (amd64 || arm64)

package main

// cycles returns the processor's counter, like the library, whose internal
// packages cannot be imported here.
func cycles() uint64
