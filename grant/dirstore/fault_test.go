package dirstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// storeWorld returns a world with a store in it.
func storeWorld(values map[string]string) *simWorld {
	files := []simImage{{markerName, markerForm + "1\n", true}, {lockPrefix, "", true}}
	for key, value := range values {
		files = append(files, simImage{recordPrefix + fileName(key), string(encodeRecord(key, []byte(value))), true})
	}
	return newWorld(files)
}

func openWorld(t *testing.T, w *simWorld) (*store, *simDisk) {
	t.Helper()
	d := &simDisk{world: w, process: new(simProcess)}
	s := must.Get(openDisk(t.Context(), d, "simulated", false))(t)
	return s, d
}

// wantValue reads with a separate store.
func wantValue(t *testing.T, w *simWorld, key, want string) {
	t.Helper()
	s, _ := openWorld(t, w)
	if got, err := s.Get(t.Context(), key); string(got) != want || err != nil {
		t.Errorf("Get(%q) = %q, %v, want %q", key, got, err, want)
	}
}

// mustCAS writes, and ends the test if that fails.
func mustCAS(t testing.TB, s *store, key, old, next string) {
	t.Helper()
	if ok, err := s.CAS(t.Context(), key, []byte(old), []byte(next)); !ok || err != nil {
		t.Fatalf("CAS(%q, %q, %q) = %v, %v, want true", key, old, next, ok, err)
	}
}

// locked takes a lock.
func locked(t *testing.T, d disk, name string) lock {
	t.Helper()
	l := must.Get(d.lock(name))(t)
	if ok, err := l.try(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	return l
}

// TestFaults makes each call of a CAS fail, with each of a few errors. If the
// CAS reports that nothing was sent, everything is unchanged, and it can be
// retried.
func TestFaults(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "x", Err: errNoRoom}
	denied := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}
	broken := errors.New("input/output error")
	tested := 0
	for _, key := range []string{"k", "new"} {
		for _, old := range []string{"A", "X"} {
			if key == "new" && old == "A" {
				old = ""
			}
			// The calls of a CAS that succeeds or is refused.
			var calls []string
			s, d := openWorld(t, storeWorld(map[string]string{"k": "A"}))
			d.trace = func(call string) { calls = append(calls, call) }
			applied := must.Get(s.CAS(t.Context(), key, []byte(old), []byte("B")))(t)
			for i, call := range calls {
				for _, fault := range []error{full, denied, broken} {
					tested++
					w := storeWorld(map[string]string{"k": "A"})
					s, d := openWorld(t, w)
					n := 0
					d.fault = func(string) error {
						if n++; n == i+1 {
							return fault
						}
						return nil
					}
					ok, err := s.CAS(t.Context(), key, []byte(old), []byte("B"))
					d.fault = nil
					was := map[string]string{"k": "A"}[key]
					what := fmt.Sprintf("CAS(%q, %q) with %q at %q", key, old, fault, call)
					synced := strings.HasPrefix(call, "sync ")
					switch {
					case strings.HasPrefix(call, "settle "), strings.HasPrefix(call, "lock ") && fault == denied: // no harm, or tried again
						if ok != applied || err != nil {
							t.Errorf("%s = %v, %v, want %v", what, ok, err, applied)
						}
						if applied {
							was = "B"
						}
					case call == "sync directory", strings.HasPrefix(call, "rename ") && fault == broken:
						if ok || !errors.Is(err, ErrFailed) || errors.Is(err, grant.ErrNotSent) || !errors.Is(err, fault) {
							t.Errorf("%s = %v, %v, want an unknown outcome that is ErrFailed", what, ok, err)
						}
						synced = true
						was = ""
					default:
						if ok || !errors.Is(err, grant.ErrNotSent) || !errors.Is(err, fault) || synced != errors.Is(err, ErrFailed) {
							t.Errorf("%s = %v, %v, want ErrNotSent, and ErrFailed: %v", what, ok, err, synced)
						}
						if w.see(tempPrefix+key) != nil {
							t.Errorf("%s leaves a temporary file", what)
						}
					}
					// Calls are refused after a failed fsync, and only then.
					_, err = s.Get(t.Context(), key)
					if synced != errors.Is(err, ErrFailed) || synced != errors.Is(err, grant.ErrNotSent) {
						t.Errorf("Get after %s = %v, want ErrFailed: %v", what, err, synced)
					}
					if was != "" || key == "new" && !synced {
						wantValue(t, w, key, was)
					}
					if !synced && was != "B" {
						if again, err := s.CAS(t.Context(), key, []byte(old), []byte("B")); again != applied || err != nil {
							t.Errorf("CAS again after %s = %v, %v, want %v", what, again, err, applied)
						}
					}
				}
			}
		}
	}
	t.Logf("report: %d faults of single calls of a CAS", tested)
}

// A call waits for a lock as long as its context allows.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := storeWorld(map[string]string{"k": "A"})
		s, d := openWorld(t, w)
		_, other := openWorld(t, w)
		locked(t, other, lockPrefix+"k")
		var tries atomic.Int64
		d.trace = func(string) { tries.Add(1) }
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := s.CAS(ctx, "k", []byte("A"), []byte("B"))
		if took := time.Since(begin); took < 10*time.Second || took > 10*time.Second+time.Millisecond {
			t.Errorf("CAS with a context of 10 s took %v", took)
		}
		if !errors.Is(err, grant.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "lock+k") {
			t.Errorf("CAS = %v, want ErrNotSent that names the lock", err)
		}
		if n := tries.Load(); n < 1000 || n > 4000 {
			t.Errorf("CAS tried %d times in 10 s, want about once in 5 ms", n)
		}
		// Other keys still work, and so does reading this one.
		mustCAS(t, s, "m", "", "1")
		wantValue(t, w, "k", "A")
	})
	// A store that fails or is closed ends the wait too.
	for _, how := range []func(*store) error{(*store).Close, func(s *store) error { return s.fail(errSimulated) }} {
		synctest.Test(t, func(t *testing.T) {
			w := storeWorld(map[string]string{"k": "A"})
			s, other := openWorld(t, w)
			l := locked(t, other, lockPrefix+"k")
			done := make(chan error)
			for range 3 {
				go func() { _, err := s.CAS(t.Context(), "k", []byte("A"), []byte("B")); done <- err }()
			}
			time.Sleep(10 * time.Second)
			failed := how(s) != nil
			if failed {
				l.release()
			}
			for range 3 {
				if err := <-done; !errors.Is(err, grant.ErrNotSent) || errors.Is(err, ErrFailed) != failed {
					t.Errorf("CAS that waited = %v, want ErrNotSent, and ErrFailed: %t", err, failed)
				}
			}
		})
	}
}

// TestCreationCrashes lets the power fail at every call while a store is
// created. Afterwards it exists or can be created.
func TestCreationCrashes(t *testing.T) {
	states := make(map[string]bool)
	var failed error
	w := newWorld(nil)
	d := &simDisk{world: w}
	check := func(string) {
		for _, state := range w.crashStates() {
			if states[state.text] || failed != nil {
				continue
			}
			states[state.text] = true
			if _, err := openDisk(t.Context(), &simDisk{world: newWorld(state.files)}, "simulated", false); err != nil && !errors.Is(err, ErrNoStore) {
				failed = fmt.Errorf("open after a crash that leaves %s: %w", state.text, err)
			}
			s, err := openDisk(t.Context(), &simDisk{world: newWorld(state.files)}, "simulated", true)
			if err != nil {
				failed = fmt.Errorf("create after a crash that leaves %s: %w", state.text, err)
				continue
			}
			mustCAS(t, s, "k", "", "1")
		}
	}
	d.trace = check
	s := must.Get(openDisk(t.Context(), d, "simulated", true))(t)
	check("")
	if failed != nil {
		t.Error(failed)
	}
	d.trace = nil
	mustCAS(t, s, "k", "", "1")
	// Acknowledged values are in a store with its marker.
	for _, state := range w.crashStates() {
		wantValue(t, newWorld(state.files), "k", "1")
	}
	t.Logf("report: %d crash states of creating a store", len(states))
}

// A process that was suspended while it opened the store does not block others
// that open it, unless the store must still be created.
func TestOpenWhileAnotherOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, w := range []*simWorld{storeWorld(nil), newWorld(nil)} {
			other := &simDisk{world: w}
			locked(t, other, lockPrefix)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := openDisk(ctx, &simDisk{world: w}, "simulated", true)
			if there := w.see(markerName) != nil; there != (err == nil) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("open while another process holds the marker's lock = %v, the store is there: %v", err, there)
			}
		}
	})
}
