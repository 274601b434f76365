package stores

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// TestUnreachable: of real errors, those of a store that is down are waited
// for, and those of settings are not.
func TestUnreachable(t *testing.T) {
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	nobody := closed.Addr().String()
	closed.Close()
	hangsUp := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer hangsUp.Close()
	go func() {
		for {
			c, err := hangsUp.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	for url, want := range map[string]bool{
		"etcd://" + nobody + "/firn?timeout=200ms":                     true,
		"etcd://" + hangsUp.Addr().String() + "/firn?timeout=200ms":    true,
		"etcd://no-such-host.invalid/firn?timeout=200ms":               true,
		"postgres://u@" + nobody + "/firn?timeout=1s":                  true,
		"postgres://u@" + hangsUp.Addr().String() + "/firn?timeout=1s": true,
		"mysql://u@" + nobody + "/firn?timeout=1s":                     true,
		"mysql://u@" + hangsUp.Addr().String() + "/firn?timeout=1s":    true,
		"etcd://" + nobody + "/firn?colour=red":                        false,
		"postgres://u@" + nobody:                                       false,
		"mysql://u@" + nobody + "/firn?tls=true&ca=/no/such/file":      false,
		"dir:/no/such/directory":                                       false,
		"redis://" + nobody:                                            false,
	} {
		s, err := Open(t.Context(), url)
		if err == nil {
			s.Close()
			t.Errorf("Open(%q) succeeds", url)
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Unreachable != want {
			t.Errorf("Open(%q) is an error that is waited for: %v, want %v: %v", url, !want, want, err)
		}
	}
	if isNetwork(io.ErrClosedPipe) {
		t.Error("a closed pipe is taken for a network that may work later")
	}
}
