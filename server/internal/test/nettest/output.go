package nettest

import (
	"bytes"
	"sync"
)

// An Output collects what is written to it. The zero Output is empty. It is
// safe for concurrent use.
type Output struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

// String returns what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
