package storehealth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
)

// A cutStore may be away.
type cutStore struct{ faultstore.Store }

// Time is not answered by an etcd that serves HTTP elsewhere.
func (c *cutStore) Time(context.Context) (time.Time, time.Duration, error) {
	if c.Cut.Load() {
		return time.Now(), 0, nil
	}
	return time.Time{}, 0, errors.New("malformed HTTP response")
}

// TestOutage: the log has a line when the store stops answering and one when it
// answers again, however many calls fail.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		inner := &cutStore{Store: faultstore.Store{Store: new(memstore.Store), Err: errors.New("no such directory")}}
		answers := Answers{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		s := grant.Observe(inner, answers.Observe)
		get := func(n int) {
			for range n {
				_, _, _ = s.(grant.Clock).Time(t.Context()) // says nothing about the store
				_, _ = s.Get(t.Context(), "k")
				_, _, _ = s.(grant.Clock).Time(t.Context())
				time.Sleep(time.Second)
			}
		}
		want := func(what string, lines ...string) {
			t.Helper()
			got := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
			if log.Len() == 0 {
				got = nil
			}
			log.Reset()
			for i := range max(len(got), len(lines)) {
				if i >= len(got) || i >= len(lines) || !strings.Contains(got[i], lines[i]) {
					t.Errorf("%s: the log says\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(lines, "\n"))
					return
				}
			}
		}
		const gone = `level=WARN msg="store call failed" call=get error="no such directory"`
		get(3)
		want("it answers")
		if up, known := answers.Up(); !up || !known {
			t.Error("a store that answers is down, as it does not say its time")
		}
		inner.Cut.Store(true)
		get(1)
		want("it stops", gone)
		if up, known := answers.Up(); up || !known {
			t.Error("a store that fails is up")
		}
		get(99)
		want("it is away")
		inner.Cut.Store(false)
		get(5)
		want("it is back", `level=INFO msg="store works again" after=1m40s failed=100`)

		// What comes and goes.
		for range 15 {
			inner.Cut.Store(true)
			get(1)
			inner.Cut.Store(false)
			get(1)
		}
		again := `level=INFO msg="store works again" after=1s failed=1`
		want("it comes and goes", gone, again, gone, again, gone, again)
		time.Sleep(time.Minute)

		// One record is damaged.
		inner.Fault = func(context.Context, faultstore.Request) error { return grant.ErrDamaged }
		get(3)
		inner.Fault = nil
		want("a record is damaged")
		if up, known := answers.Up(); !up || !known {
			t.Error("a store that finds a record damaged is down")
		}

		// It keeps reading, but does not write.
		inner.Reads.Store(true)
		for range 30 {
			_, _ = s.CAS(t.Context(), "k", nil, []byte("v"))
			get(1)
		}
		want("it does not write", `level=WARN msg="store call failed" call=cas error="no such directory"`)
		inner.Reads.Store(false)
		_, _ = s.CAS(t.Context(), "k", nil, []byte("v"))
		want("it writes again", `level=INFO msg="store works again" after=30s failed=30`)
		time.Sleep(time.Minute)

		// Cancelled calls, and calls without time, say nothing.
		inner.Hangs.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), shortCall/2)
		_, _ = s.Get(ctx, "k")
		cancel()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		_, _ = s.Get(ctx, "k")
		want("who gives up")
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		_, _ = s.Get(ctx, "k")
		cancel()
		want("it hangs", `level=WARN msg="store call failed" call=get error="context deadline exceeded"`)
	})
}
