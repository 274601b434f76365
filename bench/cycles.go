//go:build !purego && (amd64 || arm64)

package main

// cycles is the processor's counter, read as the library reads it: what is
// internal to another module cannot be imported here.
func cycles() uint64
