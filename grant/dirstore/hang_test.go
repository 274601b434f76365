package dirstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// A hang is a disk that does not answer some calls, until the hang ends.
type hang struct {
	at    func(call string) bool
	ended chan struct{}
	end   func()
}

func newHang(at func(call string) bool) *hang {
	ended := make(chan struct{})
	return &hang{at, ended, sync.OnceFunc(func() { close(ended) })}
}

func (h *hang) trace(call string) {
	if h.at(call) {
		<-h.ended
	}
}

// callsOfCAS returns the calls to the disk of a CAS of key "k" from A to B.
func callsOfCAS(t *testing.T) (calls []string) {
	t.Helper()
	s, d := openWorld(t, storeWorld(map[string]string{"k": "A"}))
	d.trace = func(call string) { calls = append(calls, call) }
	mustCAS(t, s, "k", "A", "B")
	return calls
}

// TestHang makes the disk hang at each call of a CAS. The caller returns at its
// deadline with an unknown result, and the record changes later only if its
// rename had begun. Meanwhile no other process can use the record, and other
// records are available; afterwards no lock and no file is left.
func TestHang(t *testing.T) {
	for i, at := range callsOfCAS(t) {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := storeWorld(map[string]string{"k": "A", "m": "1"})
				s, d := openWorld(t, w)
				var n atomic.Int64
				h := newHang(func(string) bool { return n.Add(1) == int64(i+1) })
				defer h.end()
				d.trace = h.trace
				const limit = 5 * time.Second
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				ok, err := s.CAS(ctx, "k", []byte("A"), []byte("B"))
				if took := time.Since(begin); took < limit || took > limit+answerTime {
					t.Errorf("CAS with a context of %v took %v", limit, took)
				}
				// From the rename on, the value may be in place.
				renamed := strings.HasPrefix(at, "rename ") || strings.HasPrefix(at, "sync directory") || strings.HasPrefix(at, "settle ")
				switch {
				case ok || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not answered for 5s"):
					t.Errorf("CAS = %v, %v, want DeadlineExceeded, and that the disk has not answered", ok, err)
				case errors.Is(err, grant.ErrNotSent), errors.Is(err, ErrFailed):
					t.Errorf("CAS = %v, want an unknown result, and the disk has not failed", err)
				}
				mustCAS(t, s, "m", "1", "2")
				if locked := !strings.HasPrefix(at, "lock ") && !strings.HasPrefix(at, "try "); locked {
					other, _ := openWorld(t, w)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if ok, err := other.CAS(ctx, "k", []byte("A"), []byte("C")); ok || !errors.Is(err, grant.ErrNotSent) {
						t.Errorf("CAS of another process = %v, %v, want ErrNotSent, as the record is locked", ok, err)
					}
				}
				h.end()
				synctest.Wait()
				want := "A"
				if renamed {
					want = "B"
				}
				wantValue(t, w, "k", want)
				if w.see(tempPrefix+"k") != nil {
					t.Error("a temporary file is left")
				}
				mustCAS(t, s, "k", want, "D")
				must.Do(t, s.Close())
			})
		})
	}
}

// TestHangOfReads makes the disk hang during all other calls.
func TestHangOfReads(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *store) error{
		"get": func(ctx context.Context, s *store) error { _, err := s.Get(ctx, "k"); return err },
		"list": func(ctx context.Context, s *store) error {
			return s.List(ctx, "", func(string, []byte) bool { return true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := openWorld(t, storeWorld(map[string]string{"k": "A", "m": "1"}))
				h := newHang(func(call string) bool { return call == "read "+recordPrefix+"k" || call == "names" })
				defer h.end()
				d.trace = h.trace
				// Some calls are abandoned, and later ones fail at once.
				for i := range maxAbandoned + 3 {
					begin := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					err := ask(ctx, s)
					cancel()
					took, late := time.Since(begin), i >= maxAbandoned
					if err == nil || !strings.Contains(err.Error(), "check the disk and its mount") || late != errors.Is(err, grant.ErrNotSent) {
						t.Errorf("call %d = %v, want that the disk does not answer, and ErrNotSent: %v", i, err, late)
					}
					if late != (took == 0) || took > time.Second+answerTime {
						t.Errorf("call %d took %v", i, took)
					}
				}
				h.end()
				synctest.Wait()
				if err := ask(t.Context(), s); err != nil {
					t.Errorf("when the disk answers again: %v", err)
				}
			})
		})
	}
}
