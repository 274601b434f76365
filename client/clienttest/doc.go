// Package clienttest provides a server for tests of programs that use package
// client. It implements the part of the HTTP API that makes IDs, and fails on
// request. It runs inside the test; firn serve is not needed.
//
// It is not for production: it keeps its node ID in no store.
package clienttest
