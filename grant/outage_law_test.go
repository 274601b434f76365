package grant

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOutageLaw: what is logged about a member that cannot renew, depending on
// its state, on earlier messages and on the rest of its window.
func TestOutageLaw(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var fenced error = &NodesExhaustedError{Fenced: true}
	// What an operator did; see intended. A member that froze may read it too.
	operators := []error{fenced, ErrDetached, ErrMoved, ErrDestroyed, ErrMismatch, errOtherNodes}
	others := []error{errNoAnswer, &NodesExhaustedError{}, errors.Join(ErrStoreWentBack, ErrDetached)}
	lines := make(map[string]int)
	for range 30_000 {
		m := newRig(t, 4, nil).m
		overdue := random.IntN(2) == 0
		left := pickOne[int64](random, -1, 0, 1, 5000)
		m.used = m.wall + pickOne[int64](random, -10, 10)
		m.hold = &hold{nodeGrant: nodeGrant{until: max(m.wall, m.used) + left, limit: maxTime}, usedAtRenewal: maxTime, lost: overdue}
		phase := Phase(random.IntN(int(Leaving) + 1))
		err := pickOne(random, append(append([]error{nil}, operators...), others...)...)
		m.status = Status{Phase: phase, Err: err, Until: timeOf(m.hold.until)}

		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		o := outage{log: logger, ended: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			o.since = time.Now().Add(-time.Minute)
		}
		o.tries = random.IntN(3)
		told := random.IntN(2) == 0
		if told {
			o.isNew(errNoAnswer)
		}
		before := o
		got := o.update(m)

		isNew := err != nil && (err != errNoAnswer || !told)
		line, lasts, want := "", time.Duration(0), before
		switch {
		case phase == Idle || phase == Leaving:
			want = outage{}
		case phase == Joining:
			if isNew && before.tries > 0 {
				line = `level=WARN msg="no node ID acquired"`
			}
		case !overdue:
			if phase == Holding && err == nil {
				want = outage{}
				if !before.since.IsZero() {
					line = `level=INFO msg="window renewed again"`
				}
			}
		case err == nil: // the renewal is in progress
		case left > 0:
			lasts = time.Duration(left) * time.Millisecond
			if isNew {
				line = `level=WARN msg="window not renewed, serving until it ends"`
			}
		default:
			want.ended = true
			want.expired = !before.ended && slices.Contains(others, err)
			if isNew || !before.ended {
				line = `level=ERROR msg="window ended, no IDs until it is renewed"`
				if slices.Contains(operators, err) {
					line = strings.Replace(line, "ERROR", "WARN", 1)
				}
			}
		}
		lines[line]++
		what := fmt.Sprintf("%v, %v, overdue %t, %d left, told %t, %+v", phase, err, overdue, left, told, before)
		if got != lasts || o.ended != want.ended || o.expired != want.expired || o.log != logger {
			t.Fatalf("%s: it lasts %v, %+v, want %v, ended %t, expired %t", what, got, o, lasts, want.ended, want.expired)
		}
		failing := err != nil && overdue && (phase == Holding || phase == Losing)
		if o.since.IsZero() != (want.since.IsZero() && !failing) || !want.since.IsZero() && !o.since.Equal(want.since) {
			t.Fatalf("%s: failing since %v", what, o.since)
		}
		if text := log.String(); (text == "") != (line == "") || !strings.Contains(text, line) || strings.Count(text, "\n") > 1 {
			t.Fatalf("%s: it logs %q, want %q", what, text, line)
		}
		if phase != Idle && phase != Leaving && line != "" && err != nil && o.isNew(err) {
			t.Fatalf("%s: it would be logged again", what)
		}
	}
	for line, n := range lines {
		if n < 100 || len(lines) != 6 {
			t.Errorf("%q: %d times, of %d lines", line, n, len(lines))
		}
	}
}

// TestDriverTimes: a driver's times are rounded to milliseconds so that
// everything used is included, and no future time counts as passed.
func TestDriverTimes(t *testing.T) {
	wall := time.Date(2026, 11, 20, 0, 0, 0, 999_999, time.UTC)
	e := event{Kind: eventDemand}.withTimes(wall, 1999*time.Microsecond, wall)
	if e.Kind != eventDemand || e.Wall != wall.UnixMilli() || e.Mono != 2 || e.Used != wall.UnixMilli()+1 {
		t.Errorf("%+v", e)
	}
	if e := (event{}).withTimes(wall, 0, time.Time{}); e.Used != never || e.Mono != 1 {
		t.Errorf("nothing was used: %+v", e)
	}
}
