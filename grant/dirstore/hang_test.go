package dirstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
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
	if ok, err := s.CAS(t.Context(), "k", []byte("A"), []byte("B")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	return calls
}

// TestHang makes the disk hang at each call of a CAS. The caller returns at its
// deadline, with an error that matches grant.ErrNotSent exactly if nothing can
// have changed, whatever the disk does later. Meanwhile no other process can
// use the record, and other records are available; afterwards no lock and no
// file is left.
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
				unknown := strings.HasPrefix(at, "rename ") || strings.HasPrefix(at, "sync directory") || strings.HasPrefix(at, "settle ")
				switch {
				case ok || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not answered for 5s"):
					t.Errorf("CAS = %v, %v, want DeadlineExceeded, and that the disk has not answered", ok, err)
				case errors.Is(err, grant.ErrNotSent) == unknown:
					t.Errorf("CAS = %v, want ErrNotSent: %v", err, !unknown)
				case errors.Is(err, ErrFailed):
					t.Errorf("CAS = %v: the disk has not failed", err)
				}
				if ok, err := s.CAS(t.Context(), "m", []byte("1"), []byte("2")); !ok || err != nil {
					t.Errorf("CAS of another key = %v, %v", ok, err)
				}
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
				if unknown {
					want = "B"
				}
				wantValue(t, w, "k", want)
				if w.see(tempPrefix+"k") != nil {
					t.Error("a temporary file is left")
				}
				if ok, err := s.CAS(t.Context(), "k", []byte(want), []byte("D")); !ok || err != nil {
					t.Errorf("CAS afterwards = %v, %v", ok, err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestHangOfReads makes the disk hang during all other calls.
func TestHangOfReads(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Store) error{
		"get":      func(ctx context.Context, s *Store) error { _, err := s.Get(ctx, "k"); return err },
		"get many": func(ctx context.Context, s *Store) error { _, err := s.GetMany(ctx, []string{"m", "k"}); return err },
		"list": func(ctx context.Context, s *Store) error {
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
				for i := range maxLeft + 3 {
					begin := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					err := ask(ctx, s)
					cancel()
					took, late := time.Since(begin), i >= maxLeft
					if !errors.Is(err, grant.ErrNotSent) || !strings.Contains(err.Error(), "has not answered for") {
						t.Errorf("call %d = %v, want ErrNotSent, and that the disk has not answered", i, err)
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

// TestCloseOfHang closes a store whose disk does not answer. The directory is
// closed when it does.
func TestCloseOfHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := storeWorld(map[string]string{"k": "A"})
		s, d := openWorld(t, w)
		closed := 0
		s.disk = closeCounter{d, &closed}
		h := newHang(func(call string) bool { return strings.HasPrefix(call, "rename ") })
		defer h.end()
		d.trace = h.trace
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if ok, err := s.CAS(ctx, "k", []byte("A"), []byte("B")); ok || err == nil || errors.Is(err, grant.ErrNotSent) {
			t.Errorf("CAS = %v, %v, want an unknown result", ok, err)
		}
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "has not answered") {
			t.Errorf("Close = %v, want that the disk has not answered", err)
		}
		if closed != 0 {
			t.Error("the directory is closed while a call uses it")
		}
		h.end()
		synctest.Wait()
		if closed != 1 {
			t.Errorf("the directory was closed %d times, want 1", closed)
		}
		wantValue(t, w, "k", "B")
	})
}

type closeCounter struct {
	disk
	closed *int
}

func (c closeCounter) close() error { *c.closed++; return c.disk.close() }

// A greedyHolder is a grant.Holder that uses everything it may.
type greedyHolder struct {
	mu    sync.Mutex
	until time.Time
	begun int
}

func (h *greedyHolder) Begin(g firn.Grant) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = g.Until
	h.begun++
	return nil
}

func (h *greedyHolder) Extend(until time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
	return nil
}

func (h *greedyHolder) Seal() {}

func (h *greedyHolder) Used() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Before(h.until) {
		return now
	}
	return h.until
}

// TestHangOfAMember makes the disk hang under a member. The member reports that
// while its window lasts and when it ends, keeps answering calls, and continues
// with the same node ID when the disk answers.
func TestHangOfAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		s, d := openWorld(t, storeWorld(nil))
		var hangs atomic.Bool
		disk := newHang(func(call string) bool { return hangs.Load() && strings.HasPrefix(call, "rename ") })
		defer disk.end()
		d.trace = disk.trace
		config, err := grant.DefaultConfig(s, firn.Default(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := grant.Create(t.Context(), s, "orders", config, time.Now()); err != nil {
			t.Fatal(err)
		}
		var log lockedBuffer
		h := new(greedyHolder)
		k := grant.NewKeeper(s, grant.Settings{Name: "orders", AllNodes: true}, h, &grant.KeeperOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := k.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := k.Wait(t.Context(), func(s grant.Status) bool { return s.Phase == grant.Holding }); err != nil {
			t.Fatal(err)
		}
		hangs.Store(true)
		time.Sleep(2 * config.Window)
		for _, want := range []string{"window not renewed, serving until it ends", "window ended, no IDs until it is renewed", "has not answered for"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not have %q:\n%s", want, log.String())
			}
		}
		if err := k.Demand(t.Context()); err != nil {
			t.Errorf("Demand = %v", err)
		}
		disk.end()
		time.Sleep(config.Window / 2)
		if status, _ := k.Status(); status.Phase != grant.Holding || status.Err != nil || !time.UnixMilli(status.Until).After(time.Now()) {
			t.Errorf("when the disk answers again the status is %+v, want a window", status)
		}
		if h.begun != 1 {
			t.Errorf("the member has begun %d grants, want the one", h.begun)
		}
		if want := "window renewed again"; !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %q:\n%s", want, log.String())
		}
		if err := k.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestDamagedRecordOfAMember damages the record of a node ID that a member
// holds. It acquires another one, and the sequencer can be listed, fenced and
// destroyed.
func TestDamagedRecordOfAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		w := storeWorld(nil)
		s, _ := openWorld(t, w)
		config, err := grant.DefaultConfig(s, firn.Default(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := grant.Create(t.Context(), s, "orders", config, time.Now()); err != nil {
			t.Fatal(err)
		}
		// So few that the member reads all of them each time.
		k := grant.NewKeeper(s, grant.Settings{Name: "orders", Lo: 0, Hi: 3}, new(greedyHolder), nil)
		if err := k.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		holds := func(s grant.Status) bool { return s.Phase == grant.Holding }
		if err := k.Wait(t.Context(), holds); err != nil {
			t.Fatal(err)
		}
		was, _ := k.Status()
		w.mu.Lock()
		record := w.see(recordPrefix + fileName(fmt.Sprintf("v1/orders/n/%04d", was.Node)))
		record.data = bytes.Replace(record.data, []byte(`"held"`), []byte(`"hold"`), 1)
		w.mu.Unlock()
		time.Sleep(2 * config.Window)
		if is, _ := k.Status(); !holds(is) || is.Node == was.Node || is.Err != nil {
			t.Errorf("the member has %+v, want a node ID other than %d", is, was.Node)
		}
		if err := k.Close(t.Context()); err != nil {
			t.Error(err)
		}
		var nodes, damaged int
		err = grant.Nodes(t.Context(), s, "orders", func(n grant.NodeInfo, err error) bool {
			if nodes++; errors.Is(err, grant.ErrDamaged) && n.Node == was.Node {
				damaged++
			}
			return true
		})
		if nodes != 2 || damaged != 1 || err != nil {
			t.Errorf("Nodes lists %d records, %d damaged, and returns %v, want 2 and 1", nodes, damaged, err)
		}
		report, err := grant.Fence(t.Context(), s, "orders", &grant.FenceOptions{DryRun: true})
		if err != nil || report.Nodes != 1 || len(report.Damaged) != 1 || !strings.Contains(report.Damaged[0].Error(), "checksum is wrong") {
			t.Errorf("Fence = %+v, %v, want one record rewritten and one damaged", report, err)
		}
		begin := time.Now()
		_, err = grant.Destroy(t.Context(), s, "orders", nil)
		if took, least := time.Since(begin), config.MaxAhead+config.Window; err != nil || took < least || took > 2*least {
			t.Errorf("Destroy = %v after %v, want it to wait for %v, as long as the owner may continue", err, took, least)
		}
	})
}
