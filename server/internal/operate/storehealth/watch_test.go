package storehealth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant/memstore"
)

// A dangerousStore reports the dangers of one check after the other.
type dangerousStore struct {
	memstore.Store
	dangers [][]string // nil: it does not answer
}

func (s *dangerousStore) Dangers(context.Context) ([]string, error) {
	now := s.dangers[0]
	if len(s.dangers) > 1 {
		s.dangers = s.dangers[1:]
	}
	if now == nil {
		return nil, errors.New("away")
	}
	return now, nil
}

// TestWatch: a danger is logged once, and so is its end, also if the store does
// not answer in between; the end of the context ends the checks.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &dangerousStore{dangers: [][]string{{"a"}, {"a"}, nil, {"a", "b"}, {"b"}, {}, {"a"}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		Watch(ctx, s, slog.New(slog.NewTextHandler(&log, nil)))
		lines := regexp.MustCompile(`time=\S+ level=`).ReplaceAllString(log.String(), "")
		want := `WARN msg="store: a"
WARN msg="store: b"
INFO msg="store: resolved: a"
INFO msg="store: resolved: b"
WARN msg="store: a"
`
		if lines != want {
			t.Errorf("the log has\n%s\nwant\n%s", lines, want)
		}
		Watch(ctx, new(memstore.Store), nil) // which has nothing to check
	})
}
