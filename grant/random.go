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

func newToken() string { return fmt.Sprintf("%016x%016x", random(), random()) }
