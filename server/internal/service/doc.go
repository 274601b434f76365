// Package service is what the protocols call: named sequencers, their
// administration, and the problems that can occur. A StaticBackend makes IDs
// with one node ID that an operator keeps unique. A StoreBackend keeps its node
// IDs in a store. A Problem is an error as clients see it, independent of the
// protocol.
//
// The packages httpapi, respapi, rpcapi and console translate between bytes and
// calls of this package, which depends on none of them.
package service
