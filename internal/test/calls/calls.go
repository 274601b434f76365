// Package calls makes calls of a grant.Store for tests, and fails the test if
// they do not end as they must. All functions but Damaged and Watch may be
// called in any goroutine, because they do not end the test. A value of ""
// means that the key is absent.
package calls

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/history"
)

// CAS makes a CAS that must be applied.
func CAS(t testing.TB, s grant.Store, key, old, next string) {
	t.Helper()
	cas(t, s, key, old, next, history.Applied, nil)
}

// Refused makes a CAS that must be refused: the key has another value.
func Refused(t testing.TB, s grant.Store, key, old, next string) {
	t.Helper()
	cas(t, s, key, old, next, history.Refused, nil)
}

// NotSent makes a CAS that must fail and certainly not be applied; see Error.
func NotSent(t testing.TB, s grant.Store, key, old, next string, causes ...any) {
	t.Helper()
	cas(t, s, key, old, next, history.NotSent, causes)
}

// Unknown makes a CAS whose result must be unknown; see Error.
func Unknown(t testing.TB, s grant.Store, key, old, next string, causes ...any) {
	t.Helper()
	cas(t, s, key, old, next, history.Unknown, causes)
}

func cas(t testing.TB, s grant.Store, key, old, next string, want history.Outcome, causes []any) {
	t.Helper()
	ok, err := s.CAS(t.Context(), key, []byte(old), []byte(next))
	what := fmt.Sprintf("CAS(%.60q, %.60q, %.60q)", key, old, next)
	if got := history.OutcomeOf(ok, err); got != want || ok && err != nil {
		t.Errorf("%s = %v, %v, want it %v", what, ok, err, want)
	} else if err != nil {
		Error(t, what, err, causes...)
	}
}

// Error fails the test unless err is an error with all causes: errors that it
// matches, and texts that it has.
func Error(t testing.TB, what string, err error, causes ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%s = nil, want an error: %q", what, causes)
	}
	for _, cause := range causes {
		switch cause := cause.(type) {
		case error:
			if !errors.Is(err, cause) {
				t.Errorf("%s = %v, want an error that matches %q", what, err, cause)
			}
		case string:
			if err != nil && !strings.Contains(err.Error(), cause) {
				t.Errorf("%s = %v, want an error with %q", what, err, cause)
			}
		}
	}
}

// Get makes a Get that must return a value.
func Get(t testing.TB, s grant.Store, key, want string) {
	t.Helper()
	if got, err := s.Get(t.Context(), key); err != nil || string(got) != want || want == "" && got != nil {
		t.Errorf("Get(%.60q) = %.60q, %v, want %.60q", key, got, err, want)
	}
}

// List makes a List that must succeed, and returns the keys in its order.
func List(t testing.TB, s grant.Store, prefix string) (keys []string, values map[string]string) {
	t.Helper()
	values = make(map[string]string)
	err := s.List(t.Context(), prefix, func(key string, value []byte) bool {
		keys = append(keys, key)
		values[key] = string(value)
		return true
	})
	if err != nil {
		t.Errorf("List(%.60q) = %v", prefix, err)
	}
	return keys, values
}

// Fill creates keys with the value "0", from several goroutines.
func Fill(t testing.TB, s grant.Store, keys []string) {
	t.Helper()
	var all sync.WaitGroup
	for w := range min(8, len(keys)) {
		all.Go(func() {
			for i := w; i < len(keys); i += 8 {
				CAS(t, s, keys[i], "", "0")
			}
		})
	}
	all.Wait()
}

// Reads makes a read of each kind that the store has, and returns their errors
// by their name.
func Reads(t testing.TB, s grant.Store, key string) map[string]error {
	_, get := s.Get(t.Context(), key)
	list := s.List(t.Context(), key, func(string, []byte) bool { return true })
	all := map[string]error{"Get": get, "List": list}
	if m, ok := grant.As[grant.MultiGetter](s); ok {
		_, all["GetMany"] = m.GetMany(t.Context(), []string{key})
	}
	if l, ok := grant.As[grant.Lineage](s); ok {
		_, _, all["Lineage"] = l.Lineage(t.Context())
	}
	if c, ok := grant.As[grant.Clock](s); ok {
		_, _, all["Time"] = c.Time(t.Context())
	}
	return all
}

// Damaged checks how a store shows that the value of a key is damaged, with the
// words: Get fails, CAS fails or is refused, and GetMany and List show the error
// in its place, beside another key, which has the value "1".
func Damaged(t testing.TB, s grant.Store, key, other string, words ...any) {
	t.Helper()
	failed := append([]any{grant.ErrDamaged, grant.ErrNotSent}, words...)
	_, err := s.Get(t.Context(), key)
	Error(t, "Get of a damaged value", err, failed...)
	for _, old := range []string{"", "1"} {
		ok, err := s.CAS(t.Context(), key, []byte(old), []byte("2"))
		if ok {
			t.Errorf("CAS of a damaged value from %q = true", old)
		} else if err != nil {
			Error(t, "CAS of a damaged value", err, failed...)
		}
	}
	all, err := s.(grant.MultiGetter).GetMany(t.Context(), []string{key, other, "absent"})
	if err != nil || string(all[1]) != "1" || all[2] != nil {
		t.Fatalf("GetMany beside a damaged value = %q, %v, want 1 and nothing", all, err)
	}
	Error(t, "GetMany of a damaged value", errors.New(string(all[0])), words...)
	keys, values := List(t, s, "")
	if len(keys) != 2 || values[other] != "1" {
		t.Errorf("List beside a damaged value yields %q, want it and another one", values)
	}
	Error(t, "List of a damaged value", errors.New(values[key]), words...)
}
