//go:build go1.27

package main

import "uuid"

// peerStd is the generator of the standard library, in Go 1.27 and later.
func peerStd() (s subject, ok bool) {
	return subject{name: "std", bound: noBound, run: func(n int) {
		var x uuid.UUID
		for range n {
			x = uuid.NewV7()
		}
		sink.Store(uint64(x[15]))
	}}, true
}
