//go:build !go1.27

package main

// peerStd is the generator of the standard library, which this version of Go
// does not have.
func peerStd() (s subject, ok bool) { return subject{}, false }
