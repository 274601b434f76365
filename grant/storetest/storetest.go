package storetest

import (
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// Run tests the stores that open returns. Each call of open must return an
// empty Store that shares its data with no other.
//
// reopen opens another Store over the data of first, which may still be open or
// may be closed already. It lets the tests check that values survive Close, and
// that two Stores can use the same data at once. It is nil for a Store whose
// data cannot be opened twice.
func Run(t *testing.T, open func(t *testing.T) grant.Store, reopen func(t *testing.T, first grant.Store) grant.Store) {
	t.Helper()
	su := suite{open, reopen}
	for _, c := range []struct {
		name string
		run  func(t *testing.T, su suite)
	}{
		{"steps", testSteps},
		{"compare bytes", testCompareBytes},
		{"values", testValues},
		{"bad values", testBadValues},
		{"keys", testKeys},
		{"bad keys", testBadKeys},
		{"arguments are the caller's", testArguments},
		{"results are the caller's", testResults},
		{"list long", testListLong},
		{"list stops", testListStops},
		{"list yield uses the store", testListYield},
		{"list and changes", testListChanges},
		{"context done before", testContextBefore},
		{"context done in list", testContextInList},
		{"histories", testHistories},
		{"nothing is left", testNothingLeft},
		{"close", testClose},
		{"close meanwhile", testCloseMeanwhile},
		{"two at once", testTwoAtOnce},
		{"get many", testGetMany},
		{"get many in order", testGetManyInOrder},
		{"watch", testWatch},
		{"lineage", testLineage},
		{"clock", testClock},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, su) })
	}
}

const (
	// busy is how long tests keep the store busy while others look at it.
	busy = 300 * time.Millisecond

	// soon is how long a call may take after its context is done or its store
	// is closed. It is long, so that a busy machine fails no test.
	soon = 2 * time.Minute
)

// A suite holds the store and the settings for a test.
type suite struct {
	open   func(t *testing.T) grant.Store
	reopen func(t *testing.T, first grant.Store) grant.Store // or nil
}

// new opens an empty store, and closes it at the end of the test.
func (su suite) new(t *testing.T) *subject {
	t.Helper()
	return su.subject(t, su.open(t))
}

// again opens another store over the data of first.
func (su suite) again(t *testing.T, first *subject) *subject {
	t.Helper()
	return su.subject(t, su.reopen(t, first.Store))
}

func (su suite) subject(t *testing.T, s grant.Store) *subject {
	t.Cleanup(func() { must.Do(t, s.Close()) })
	return &subject{t: t, Store: s, ctx: t.Context()}
}
