// Package service is what protocols speak to: named sequencers, what is done
// with them, and what can go wrong. A Static makes IDs with one node ID that an
// operator keeps unique; a Cluster keeps its node IDs in a store. A Fault is an
// error of theirs as clients read it, whatever the protocol.
//
// The packages httpapi, respapi, rpcapi and console turn bytes into calls of
// this package. It knows none of them.
package service
