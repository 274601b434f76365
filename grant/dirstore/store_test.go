//go:build linux || darwin || windows

package dirstore

import (
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
	"github.com/firnid/firn/internal/test/must"
)

// forTests creates a store on any file system of the temporary directory.
func forTests() *Options { return &Options{Create: true, AllowVolatile: true} }

func open(t testing.TB, path string) *store {
	t.Helper()
	s := must.Get(openStore(t.Context(), path, forTests()))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t,
		func(t *testing.T) grant.Store { return open(t, t.TempDir()) },
		func(t *testing.T, first grant.Store) grant.Store { return open(t, first.(*store).path) })
}
