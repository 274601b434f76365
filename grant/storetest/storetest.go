package storetest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
)

// Options configure Run. Nil and the zero Options mean the defaults.
type Options struct {
	// Reopen opens another Store over the data of first, which may still be
	// open or may be closed already. It lets the tests check that values
	// survive Close, and that two Stores can use the same data at once. It is
	// nil for a Store whose data cannot be opened twice.
	Reopen func(t *testing.T, first grant.Store) grant.Store

	// Time is how long concurrent histories are made and checked. Zero means
	// one second. There are never more than 20,000 histories.
	Time time.Duration
}

// Run tests the stores that open returns. Each call of open must return an
// empty Store that shares its data with no other. Nil Options mean the defaults.
func Run(t *testing.T, open func(t *testing.T) grant.Store, o *Options) {
	t.Helper()
	o = cmp.Or(o, new(Options))
	su := suite{
		open: open,
		time: cmp.Or(o.Time, time.Second),
		busy: 300 * time.Millisecond,
		soon: 5 * time.Minute,
	}
	if o.Reopen != nil {
		su.reopen = o.Reopen
	}
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.run(t, su) })
	}
}

// A testCase is one test of the suite.
type testCase struct {
	name string
	run  func(t *testing.T, su suite)
}

// cases returns all tests of the suite. TestMistakes shows for each that some
// broken store fails it.
func cases() []testCase {
	return []testCase{
		{"absent", testAbsent},
		{"create", testCreate},
		{"replace", testReplace},
		{"refused", testRefused},
		{"compare bytes", testCompareBytes},
		{"compare value not revision", testCompareValue},
		{"values", testValues},
		{"bad values", testBadValues},
		{"keys", testKeys},
		{"bad keys", testBadKeys},
		{"arguments are the caller's", testArguments},
		{"results are the caller's", testResults},
		{"list prefix", testListPrefix},
		{"list long", testListLong},
		{"list stops", testListStops},
		{"list yield uses the store", testListYield},
		{"list and changes", testListChanges},
		{"increments", testIncrements},
		{"creators", testCreators},
		{"context done before", testContextBefore},
		{"context done meanwhile", testContextMeanwhile},
		{"context done in list", testContextInList},
		{"histories", testHistories},
		{"close", testClose},
		{"close meanwhile", testCloseMeanwhile},
		{"reopen", testReopen},
		{"two at once", testTwoAtOnce},
		{"get many", testGetMany},
		{"get many in order", testGetManyInOrder},
		{"watch", testWatch},
		{"lineage", testLineage},
		{"clock", testClock},
	}
}

// A suite holds the store and the settings for a test.
type suite struct {
	open   func(t *testing.T) grant.Store
	reopen func(t *testing.T, first grant.Store) grant.Store // or nil
	time   time.Duration                                     // as in Options
	busy   time.Duration                                     // how long other tests keep the store busy

	// soon is how long a call may take after its context is done or its store
	// is closed. It is long, so that a busy machine fails no test.
	soon time.Duration
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
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // if the store hangs
	t.Cleanup(cancel)
	return &subject{t: t, Store: s, ctx: ctx}
}
