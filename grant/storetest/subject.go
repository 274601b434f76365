package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
)

// A subject is a store under test, with calls that fail the test if the store
// does not do what is wanted.
type subject struct {
	t *testing.T
	grant.Store
	ctx context.Context // of calls for which the context does not matter
}

// want ends the test unless the key has the value; "" means absent.
func (s *subject) want(key, value string) {
	s.t.Helper()
	calls.Get(s.t, s, key, value)
	s.endIfFailed()
}

// cas ends the test unless CAS is applied. An old value of "" means absent.
func (s *subject) cas(key, old, next string) {
	s.t.Helper()
	calls.CAS(s.t, s, key, old, next)
	s.endIfFailed()
}

// fill creates the keys with the value "0".
func (s *subject) fill(keys []string) {
	s.t.Helper()
	calls.Fill(s.t, s, keys)
	s.endIfFailed()
}

// list returns everything that List yields.
func (s *subject) list(prefix string) (keys []string, values map[string]string) {
	s.t.Helper()
	keys, values = calls.List(s.t, s, prefix)
	s.endIfFailed()
	return keys, values
}

func (s *subject) endIfFailed() {
	if s.t.Failed() {
		s.t.FailNow()
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
