package httpapi

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/operate/storehealth"
	"github.com/firnid/firn/server/internal/service"
)

// A world is a StoreBackend on a store that fails, configured as in a server.
type world struct {
	t     *testing.T
	store *faultstore.Store
	c     *service.StoreBackend
	h     *Handler

	hangs, refuses atomic.Bool // all writes hang, or those of orders fail
}

// inWorld runs a test with a StoreBackend that has served IDs of the sequencer
// orders.
func inWorld(t *testing.T, run func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(27 * 365 * 24 * time.Hour) // after the layout's epoch
		w := &world{t: t, store: &faultstore.Store{Store: new(memstore.Store), Err: errDown}}
		w.store.Fault = func(ctx context.Context, r faultstore.Request) error {
			switch {
			case r.Kind != grant.RequestCAS:
			case w.hangs.Load():
				<-ctx.Done()
				return ctx.Err()
			case w.refuses.Load() && strings.HasPrefix(r.Key, "v1/orders/"):
				return errDown
			}
			return r.Do()
		}
		answers := new(storehealth.Answers)
		w.c = service.NewStoreBackend(service.StoreBackendConfig{Admin: service.NewStoreAdmin(grant.Observe(w.store, answers.Observe), answers.Silent), Options: sequencer.Options{Window: 30 * time.Second}})
		w.h = NewHandler(Config{Front: service.Front{Backend: w.c}})
		w.want("first", 200, 0)
		run(w)
		w.hangs.Store(false)
		w.refuses.Store(false)
		must.Do(t, w.c.Close(t.Context()))
		synctest.Wait()
	})
}

// want requests an ID, and checks the status and the longest time of the
// answer.
func (w *world) want(what string, status int, most time.Duration) {
	w.t.Helper()
	w.wantFor(what, "POST", "/v1/sequencers/orders/next", status, most)
}

func (w *world) wantFor(what, method, path string, status int, most time.Duration) {
	w.t.Helper()
	begin := time.Now()
	got := do(w.h, method, path)
	if took := time.Since(begin); got.Code != status || took > most {
		w.t.Errorf("%s: %d after %v, want %d after %v at most: %s", what, got.Code, took, status, most, got.Body)
	}
	if status == 503 && got.Code == 503 {
		wantProblem(w.t, got, service.StoreUnavailable)
		if got.Header().Get("Retry-After") != "1" {
			w.t.Errorf("%s: Retry-After is %q, want 1", what, got.Header().Get("Retry-After"))
		}
	}
}

// TestSilentStore: once the window has ended and the store has been silent for
// five seconds, every name and every path that needs the store gets 503 at
// once, and works again soon after the store answers.
func TestSilentStore(t *testing.T) {
	for what, fails := range map[string]func(*faultstore.Store) *atomic.Bool{
		"refuses": func(s *faultstore.Store) *atomic.Bool { return &s.Cut },
		"hangs":   func(s *faultstore.Store) *atomic.Bool { return &s.Hangs },
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				fails(w.store).Store(true)
				for end := time.Now().Add(28 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
					w.want("within the window", 200, 0)
				}
				time.Sleep(2 * time.Second)
				var waiting sync.WaitGroup
				for range 20 {
					waiting.Go(func() { w.want("at the end of the window", 503, 200*time.Millisecond) })
				}
				waiting.Wait()
				for range 10 {
					w.want("after it", 503, 0)
					w.wantFor("another name", "POST", "/v1/sequencers/users/next", 503, 0)
					w.wantFor("a list", "GET", "/v1/sequencers", 503, 0)
					w.wantFor("members", "GET", "/v1/members", 503, 0)
					w.wantFor("detach", "POST", "/v1/sequencers/orders/detach", 503, 0)
					time.Sleep(3 * time.Second)
				}
				fails(w.store).Store(false)
				time.Sleep(2 * time.Second)
				w.want("it answers again", 200, service.DefaultRequestTimeout)
				w.wantFor("another name", "POST", "/v1/sequencers/users/next", 200, service.DefaultRequestTimeout) // opening it may be paused
				w.wantFor("a list", "GET", "/v1/sequencers", 200, 0)
			})
		})
	}
}

// TestStoreOfReads: a store that answers reads but takes no writes, such as a
// database without its standby, is useless for IDs but can still be shown.
func TestStoreOfReads(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hangs.Store(true)
		for end := time.Now().Add(31 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
			do(w.h, "POST", "/v1/sequencers/orders/next")
		}
		for range 30 {
			w.want("without writes", 503, 0)
			w.wantFor("a list", "GET", "/v1/sequencers", 200, 0)
			w.wantFor("whether it is ready", "GET", "/readyz", 503, 0)
			time.Sleep(time.Second)
		}
		w.hangs.Store(false)
		time.Sleep(10 * time.Second)
		w.wantFor("whether it is ready, with writes", "GET", "/readyz", 200, 0)
		w.want("with writes", 200, service.DefaultRequestTimeout)
	})
}

// TestOneKeyFails: a store that takes no writes of one sequencer, whose row is
// locked or for whose prefix there is no permission, does not affect the
// others.
func TestOneKeyFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.wantFor("first", "POST", "/v1/sequencers/users/next", 200, 0)
		time.Sleep(2 * time.Minute) // idle until the windows have ended
		w.refuses.Store(true)
		refused := make(map[string]int)
		for i := range 30 {
			do(w.h, "POST", "/v1/sequencers/orders/next")
			for _, name := range []string{"fresh", "users"} {
				if i >= 10 && do(w.h, "POST", "/v1/sequencers/"+name+"/next").Code != 200 {
					refused[name]++
				}
			}
			time.Sleep(time.Second)
		}
		for name, n := range refused {
			if n > 1 { // the first one begins to open it or to renew its window
				t.Errorf("%d calls for %s refused though the store takes their writes", n, name)
			}
		}
	})
}
