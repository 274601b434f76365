package grant

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// TestCausesLaw: each cause of an outage is logged once, whatever its text, and
// all errors of the store are one cause.
func TestCausesLaw(t *testing.T) {
	causes := []error{
		ErrNotFound, ErrDestroyed, ErrDetached, ErrMismatch, ErrNodesExhausted, ErrClockBehind, &ClockAheadError{}, ErrRolledBack,
		ErrDamaged, ErrNewerVersion, errors.New("any of the store"), &ClockAheadError{Comparing: true},
	}
	for first := range causes {
		o := outage{log: slog.New(slog.DiscardHandler)}
		for i := range causes {
			cause := causes[(first+i)%len(causes)]
			for time := range 2 {
				if got := o.isNew(fmt.Errorf("port %d: %w", time, cause)); got != (time == 0) {
					t.Fatalf("cause %d after %d others, time %d: new %t", (first+i)%len(causes), i, time+1, got)
				}
			}
		}
		if o.isNew(errors.New("another of the store")) {
			t.Error("another text is another cause")
		}
	}
}

// TestDriverTimes: a driver's times become milliseconds so that nothing that was
// used is left out, and no time that has not come counts as passed.
func TestDriverTimes(t *testing.T) {
	wall := time.Date(2026, 11, 20, 0, 0, 0, 999_999, time.UTC)
	e := Event{Kind: Demand}.At(wall, 1999*time.Microsecond, wall)
	if e.Kind != Demand || e.Wall != wall.UnixMilli() || e.Mono != 2 || e.Used != wall.UnixMilli()+1 {
		t.Errorf("%+v", e)
	}
	if e := (Event{}).At(wall, 0, time.Time{}); e.Used != Never || e.Mono != 1 {
		t.Errorf("nothing was used: %+v", e)
	}
}

// TestErrorIsUnknown: an error of a write says that its result is unknown, also
// where the driver says that it was applied.
func TestErrorIsUnknown(t *testing.T) {
	for name, request := range map[string]func(r *rig){
		"claim":   func(r *rig) { r.claiming() },
		"renewal": func(r *rig) { r.holding(); r.renewing() },
		"release": func(r *rig) { r.holding(); r.step(Event{Kind: Release}); r.step(Event{Kind: Sealed}) },
	} {
		r := newRig(t, 4, nil)
		request(r)
		key := r.asks(CAS).Key
		r.answer(Event{Applied: true, Err: errNoAnswer})
		if get := r.asks(Get); get.Key != key || r.did(Begin) != nil || r.did(Extend) != nil {
			t.Errorf("%s: %+v", name, r.out)
		}
	}
}

// TestReleaseWaits: a release that was not applied is not written again as fast
// as the store answers.
func TestReleaseWaits(t *testing.T) {
	r := newRig(t, 4, nil)
	r.holding()
	r.step(Event{Kind: Release})
	r.step(Event{Kind: Sealed})
	for range 3 {
		r.asks(CAS)
		r.answer(Event{Err: errNoAnswer})
		r.asks(Get)
		r.answer(Event{Values: [][]byte{r.m.hold.record}})
		if r.request != nil || r.m.notBefore <= r.mono || r.m.Status().Err == nil {
			t.Errorf("it asks for %+v at once, and is %+v", r.request, r.m.Status())
		}
		r.later(6000)
	}
}
