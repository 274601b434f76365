package faultstore

import (
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// Put writes a value past the protocol, whatever the store had.
func Put(t testing.TB, s grant.Store, key, value string) {
	t.Helper()
	old := must.Get(s.Get(t.Context(), key))(t)
	if !must.Get(s.CAS(t.Context(), key, old, []byte(value)))(t) {
		t.Fatalf("%s was not written", key)
	}
}
