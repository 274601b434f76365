package faultstore

import (
	"slices"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
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

// Copy returns a store with what another one has at this moment.
func Copy(t testing.TB, s grant.Store) *memstore.Store {
	t.Helper()
	c := new(memstore.Store)
	must.Do(t, s.List(t.Context(), "", func(key string, value []byte) bool {
		return must.Get(c.CAS(t.Context(), key, nil, slices.Clone(value)))(t)
	}))
	return c
}
