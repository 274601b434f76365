package doctor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firnid/firn/grant/memstore"
)

// A skewedClock is a Store whose clock is off.
type skewedClock struct {
	memstore.Store
	now        func() time.Time
	resolution time.Duration
	err        error
}

func (s *skewedClock) Time(context.Context) (time.Time, time.Duration, error) {
	return s.now(), s.resolution, s.err
}

// TestClockLead: the store's time is an interval, and no clock within it is
// wrong.
func TestClockLead(t *testing.T) {
	begin := time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		store, resolution, takes time.Duration
		err                      error
		want                     time.Duration
	}{
		{},
		{store: -time.Second, want: time.Second},
		{store: -time.Second, resolution: time.Second},
		{store: -time.Hour, resolution: time.Second, takes: time.Minute, want: time.Hour - time.Second},
		{store: time.Hour, resolution: time.Second, want: -time.Hour},
		{store: time.Hour, takes: time.Minute, want: time.Minute - time.Hour},
		{store: 30 * time.Second, takes: time.Minute},
		{store: time.Hour, err: errors.New("it does not say")},
	} {
		now := begin
		s := &skewedClock{resolution: tt.resolution, err: tt.err, now: func() time.Time {
			told := now.Add(tt.store)
			now = now.Add(tt.takes)
			return told
		}}
		by, _, _ := ClockLead(t.Context(), s, func() time.Time { return now })
		if by != tt.want {
			t.Errorf("%+v: ahead by %v, want %v", tt, by, tt.want)
		}
	}
	if by, _, err := ClockLead(t.Context(), new(memstore.Store), time.Now); by != 0 || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a store that does not report its time: %v, %v", by, err)
	}
}
