package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
)

// A subject is a store under test, with calls that fail the test if the store
// does not do what is wanted.
type subject struct {
	t *testing.T
	grant.Store
	ctx context.Context // of calls for which the context does not matter
}

// want fails the test unless the key has the value; "" means absent.
func (s *subject) want(key, value string) {
	s.t.Helper()
	got, err := s.Get(s.ctx, key)
	if err != nil || string(got) != value || value == "" && got != nil {
		s.t.Fatalf("Get(%.60q) = %.60q, %v, want %.60q, and nil if that is empty", key, got, err, value)
	}
}

// cas fails the test unless CAS is applied, or refused, as wanted. An old value
// of "" means absent.
func (s *subject) cas(key, old, next string, want bool) {
	s.t.Helper()
	got, err := s.CAS(s.ctx, key, valueOf(old), []byte(next))
	if got != want || err != nil {
		s.t.Fatalf("CAS(%.60q, %.60q, %.60q) = %v, %v, want %v", key, old, next, got, err, want)
	}
}

// valueOf returns the bytes of a value; "" means absent.
func valueOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// list returns everything that List yields.
func (s *subject) list(prefix string) (keys []string, values map[string]string) {
	s.t.Helper()
	values = make(map[string]string)
	err := s.List(s.ctx, prefix, func(key string, value []byte) bool {
		keys = append(keys, key)
		values[key] = string(value)
		return true
	})
	if err != nil {
		s.t.Fatalf("List(%q) = %v", prefix, err)
	}
	return keys, values
}

// wantEmpty fails the test if the store has a key.
func (s *subject) wantEmpty() {
	s.t.Helper()
	if keys, _ := s.list(""); len(keys) > 0 {
		s.t.Fatalf("List(\"\") yields %q, want nothing: nothing was stored", keys)
	}
}

// notSent fails the test unless err matches grant.ErrNotSent and, unless it is
// nil, cause.
func notSent(t *testing.T, what string, err, cause error) {
	t.Helper()
	if !errors.Is(err, grant.ErrNotSent) {
		t.Errorf("%s = %v, want an error that matches grant.ErrNotSent", what, err)
	} else if cause != nil && !errors.Is(err, cause) {
		t.Errorf("%s = %v, want an error that also matches %q", what, err, cause)
	}
}

// bytesOf returns a value of n bytes in which no part repeats.
func bytesOf(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:n]
}

// sameKeys fails the test unless the keys are those wanted, in that order.
func sameKeys(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s yields %d keys, want %d: %.60q, want %.60q", what, len(got), len(want), got, want)
}
