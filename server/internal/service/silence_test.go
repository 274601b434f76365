package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/server/internal/operate/storehealth"
)

// TestSilenceWatch: a client that goes away, or a limit that passes, is not
// reported as the store's silence; and no goroutine runs when all is well.
func TestSilenceWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &faultstore.Store{Store: new(memstore.Store)}
		answers := new(storehealth.Answers)
		p := newSilenceWatch(grant.Observe(m, answers.Observe), answers.Silent)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := p.whileAnswering(ctx, storeUse{}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if !errors.Is(err, context.Canceled) || errors.Is(err, firn.ErrUnavailable) {
			t.Errorf("a client that goes away: %v", err)
		}
		m.Hangs.Store(true)
		store := p.store
		asked := time.Now()
		err = p.whileAnswering(t.Context(), storeUse{}, func(ctx context.Context) error {
			for ctx.Err() == nil {
				once, cancel := context.WithTimeout(ctx, time.Second)
				_, _ = store.Get(once, "k")
				cancel()
			}
			return ctx.Err()
		})
		if e, ok := errors.AsType[*silentError](err); !ok || e.silent < maxSilence || !strings.Contains(err.Error(), "5s") {
			t.Errorf("a silent store: %v", err)
		}
		if took := time.Since(asked); took > maxSilence+time.Second+lookEvery {
			t.Errorf("it took %v", took)
		}
		began := time.Now()
		m.Hangs.Store(false)
		_, _ = store.Get(t.Context(), "k")
		m.Hangs.Store(true)
		err = p.whileAnswering(t.Context(), storeUse{}, func(ctx context.Context) error {
			_, _ = store.Get(ctx, "k") // until it is ended
			return nil
		})
		if took := time.Since(began); err != nil || took < maxSilence {
			t.Errorf("a call that succeeds as it is ended, after %v: %v", took, err)
		}
		needed := false
		ran := false
		err = p.whileAnswering(t.Context(), storeUse{onlyIf: func() bool { return needed }}, func(context.Context) error { ran = true; return grant.ErrDetached })
		if !ran || !errors.Is(err, grant.ErrDetached) {
			t.Errorf("a call that may not need the store: %v, it ran: %t", err, ran)
		}
		m.Hangs.Store(false)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		p.mu.Lock()
		if p.probing {
			t.Error("it is still probed, though the store answers")
		}
		p.mu.Unlock()
		p.close()
	})
}
