package replicated

import (
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
)

// TestStore: while its standby follows, it is a store like any other.
func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) grant.Store { return new(Store) }, nil)
}
