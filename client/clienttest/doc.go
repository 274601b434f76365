// Package clienttest has a server for tests of programs that use package
// client: it speaks the part of the HTTP API that makes IDs, and fails when it
// is told to. It runs inside the test; firn serve is not needed.
//
// It is no server for production: it keeps its node ID in no store.
package clienttest
