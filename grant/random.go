package grant

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
)

// random returns a random number from the system. A copy of a virtual machine
// gets different ones if the system detects the copy.
func random() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// newToken returns a random text of 128 bits.
func newToken(random func() uint64) string { return fmt.Sprintf("%016x%016x", random(), random()) }
