package members

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// A slow store takes some time for everything.
type slow struct{ grant.Store }

func (slow) pause() { time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond) }

func (s slow) Get(ctx context.Context, key string) ([]byte, error) {
	s.pause()
	v, err := s.Store.Get(ctx, key)
	s.pause()
	return v, err
}

func (s slow) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	s.pause()
	ok, err := s.Store.CAS(ctx, key, old, next)
	s.pause()
	return ok, err
}

// TestClockOffset: the clock of a server is compared with those of others, to
// within a tenth of a second; one wrong clock of three does not count; and a
// clock that is set is noticed.
func TestClockOffset(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others []time.Duration // how far their clocks are ahead
		want   time.Duration
	}{
		{"right", []time.Duration{0}, 0},
		{"behind", []time.Duration{3 * time.Second}, -3 * time.Second},
		{"ahead", []time.Duration{-70 * time.Second}, 70 * time.Second},
		{"a little", []time.Duration{-400 * time.Millisecond, -600 * time.Millisecond}, 500 * time.Millisecond},
		{"one of three is wrong", []time.Duration{0, time.Hour, 50 * time.Millisecond}, -50 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(27 * 365 * 24 * time.Hour)
				store := slow{new(memstore.Store)}
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				self := New(store, Options{})
				all.Go(func() { self.Run(ctx, host("self")) })
				var set sync.Map // of others: how far their clocks were set
				for i, ahead := range tt.others {
					time.Sleep(time.Duration(rand.IntN(10_000)) * time.Millisecond)
					set.Store(i, ahead)
					other := New(store, Options{Now: func() time.Time {
						ahead, _ := set.Load(i)
						return time.Now().Add(ahead.(time.Duration))
					}})
					all.Go(func() { other.Run(ctx, host("other")) })
				}
				c := NewComparer(store, self.ID, nil)
				all.Go(func() { c.Run(ctx) })
				wants := func(what string, want time.Duration) {
					t.Helper()
					ahead, known := c.Offset()
					if d := ahead - want; !known || d > 100*time.Millisecond || d < -100*time.Millisecond {
						t.Errorf("%s: ahead by %v (known %t), want %v", what, ahead, known, want)
					}
				}
				if _, known := c.Offset(); known {
					t.Error("it is known at once")
				}
				time.Sleep(5 * time.Minute)
				wants("after 5 minutes", tt.want)
				time.Sleep(time.Hour)
				wants("after an hour", tt.want)
				for i, ahead := range tt.others {
					set.Store(i, ahead+2*time.Second)
				}
				time.Sleep(10 * time.Minute)
				wants("after they were set", tt.want-2*time.Second)
				stop()
				all.Wait()
			})
		})
	}
}

// TestClockAlone: without others nothing is known, and with others that are
// gone no more.
func TestClockAlone(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(27 * 365 * 24 * time.Hour)
			store := new(memstore.Store)
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			self := New(store, Options{})
			all.Go(func() { self.Run(ctx, host("self")) })
			c := NewComparer(store, self.ID, nil)
			all.Go(func() { c.Run(ctx) })
			time.Sleep(10 * time.Minute)
			if _, known := c.Offset(); known {
				t.Error("alone, it knows of others")
			}
			there, gone := context.WithCancel(ctx)
			var last sync.WaitGroup
			other := New(leaving{store, there, silent}, Options{})
			last.Go(func() { other.Run(there, host("other")) })
			time.Sleep(10 * time.Minute)
			if _, known := c.Offset(); !known {
				t.Error("with another one it knows nothing")
			}
			gone()
			last.Wait()
			time.Sleep(5 * time.Minute)
			if ahead, known := c.Offset(); known {
				t.Errorf("silent %t: it still knows %v of one that is gone", silent, ahead)
			}
			stop()
			all.Wait()
		})
	}
}

// A leaving store takes no last word where its member ends silently.
type leaving struct {
	grant.Store
	there  context.Context
	silent bool
}

func (s leaving) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if s.silent && s.there.Err() != nil {
		return false, grant.ErrNotSent
	}
	return s.Store.CAS(ctx, key, old, next)
}
