// Package storetest contains the tests that every grant.Store must pass:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) grant.Store { return new(memstore.Store) }, nil)
//	}
//
// It tests what is visible from outside: the guarantees of Get, CAS and List,
// called in sequence and concurrently, and those of the optional interfaces
// that a Store has.
//
// The suite cannot check whether a value survives a loss of power, a failover
// or a partition. That needs a separate test for each store, and the uniqueness
// of IDs depends on it.
package storetest
