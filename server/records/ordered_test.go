package records

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
)

// TestOrdered: records come in the order of their items, whichever worker is
// slow; Flush writes all, and an error of the output ends it.
func TestOrdered(t *testing.T) {
	var makers atomic.Int64
	slow := func() func([]byte, int) []byte {
		mine := makers.Add(1)
		return func(b []byte, n int) []byte {
			for range (int64(n) * mine) % 7 {
				runtime.Gosched()
			}
			return fmt.Appendf(b, "%d\n", n)
		}
	}
	var got, want bytes.Buffer
	o := NewOrdered(NewWriter(&got), slow)
	for n := range 10*batchItems + 3 {
		if err := o.Add(n); err != nil {
			t.Fatal(err)
		}
		want.WriteString(strconv.Itoa(n) + "\n")
		if n%777 == 0 {
			if err := o.Flush(); err != nil || got.String() != want.String() {
				t.Fatalf("after %d items: %d bytes, %v, want %d", n+1, got.Len(), err, want.Len())
			}
		}
	}
	if err := o.Flush(); err != nil || got.String() != want.String() {
		t.Errorf("%d bytes, %v, want %d", got.Len(), err, want.Len())
	}
	o.Close()

	full := errors.New("disk full")
	o = NewOrdered(NewWriter(failing{full}), slow)
	defer o.Close()
	err := error(nil)
	for n := 0; err == nil && n < 1_000_000; n++ {
		err = o.Add(n)
	}
	if !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

// failing is an output that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
