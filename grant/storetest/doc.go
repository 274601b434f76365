// Package storetest has the tests that every grant.Store passes:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) grant.Store { return new(memstore.Store) })
//	}
//
// It tests what can be seen from outside: what Get, CAS and List promise, one
// call after the other and many at once, and what the optional interfaces
// promise where a Store has them. Linearizable is there for tests of a store's
// own, which stop and kill what is behind it.
//
// The suite cannot see whether a value outlives a loss of power, a failover or
// a partition: that needs a test of its own for each store, and is what
// uniqueness rests on. Replicated is the other side of it: a store for tests of
// what uses stores, which loses in a failover what only a read has shown.
package storetest
