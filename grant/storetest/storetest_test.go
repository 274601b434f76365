package storetest

import (
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

func TestRun(t *testing.T) {
	Run(t, func(t *testing.T) grant.Store { return new(memstore.Store) }, nil)
}
