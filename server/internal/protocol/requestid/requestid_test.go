package requestid

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/firnid/firn/internal/test/must"
)

func TestNewID(t *testing.T) {
	seen := make(map[string]bool)
	for range 10_000 {
		id := New()
		if !Valid(id) || len(id) != 16 || seen[id] {
			t.Fatalf("New() = %q", id)
		}
		seen[id] = true
	}
}

func TestValues(t *testing.T) {
	long := strings.Repeat("x", maxID)
	for _, sent := range [][]string{{"a"}, {"7c1f-2b"}, {long}, {`"{}=%`}} {
		if got := Values(sent); len(got) != 1 || got[0] != sent[0] {
			t.Errorf("%q: %q", sent, got)
		}
	}
	for _, sent := range [][]string{nil, {""}, {"a b"}, {"a\nlevel=ERROR"}, {"é"}, {"\x7f"}, {long + "x"}, {"a", "b"}} {
		if got := Values(sent); len(got) != 1 || len(got[0]) != 16 {
			t.Errorf("%q: %q, want a new one", sent, got)
		}
	}
}

func TestHandler(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(NewHandler(slog.NewTextHandler(&out, nil)))
	log.With("a", 1).InfoContext(WithID(t.Context(), "x1"), "one")
	log.Info("two")
	if got := out.String(); strings.Count(got, "request_id") != 1 || !strings.Contains(got, "msg=one a=1 request_id=x1\n") {
		t.Errorf("the log is\n%s", got)
	}
}

// It is a handler like others.
func TestHandlerLaws(t *testing.T) {
	var out bytes.Buffer
	h := NewHandler(slog.NewJSONHandler(&out, nil))
	err := slogtest.TestHandler(h, func() (all []map[string]any) {
		for line := range bytes.Lines(out.Bytes()) {
			m := make(map[string]any)
			must.Do(t, json.Unmarshal(line, &m))
			all = append(all, m)
		}
		return all
	})
	if err != nil {
		t.Error(err)
	}
}
