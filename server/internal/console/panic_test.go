package console

import (
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// inPage reports whether the caller runs in the goroutine of a page's request:
// a panic elsewhere ends the process, as it should.
func inPage() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "console.(*Console).ServeHTTP") {
			return true
		}
		if !more {
			return false
		}
	}
}

// TestPagesThatPanic: wherever in a page the clock panics, the pages after it
// are shown, and nothing waits for a lock that is never given back.
func TestPagesThatPanic(t *testing.T) {
	panics := 0
	for _, path := range []string{"/", "/members", "/sequencers/orders", "/sequencers/orders/detach", "/inspect/1"} {
		for n := int32(1); ; n++ {
			var left atomic.Int32
			h, _, _ := newWorld(t, func(c *Config) {
				c.Now = func() time.Time {
					if left.Load() > 0 && inPage() && left.Add(-1) == 0 {
						panic("clock")
					}
					return time.Now()
				}
			})
			if w := post(h, "/create", map[string][]string{"name": {"orders"}}); w.Code != http.StatusSeeOther {
				t.Fatal(w)
			}
			left.Store(n)
			func() {
				defer func() { _ = recover() }() // as net/http does
				if path == "/sequencers/orders/detach" {
					post(h, path, nil)
				} else {
					get(h, path)
				}
			}()
			did := left.Swap(0) == 0
			for _, again := range []string{"/", "/members", "/sequencers/orders"} {
				if w := get(h, again); w.Code != http.StatusOK {
					t.Errorf("%s, a panic at the clock's use %d: then %s is %d", path, n, again, w.Code)
				}
			}
			if w := post(h, "/sequencers/orders/detach", nil); w.Code != http.StatusSeeOther && w.Code != http.StatusConflict {
				t.Errorf("%s, a panic at the clock's use %d: then detaching is %d", path, n, w.Code)
			}
			if !did {
				break
			}
			panics++
		}
	}
	if panics < 8 {
		t.Errorf("there were %d panics only", panics)
	}
	t.Logf("report: %d panics", panics)
}
