// Package httpapi serves IDs over HTTP: batches of a named sequencer as JSON,
// text or packed octets, and readings of single IDs. The file docs/http.md of
// the repository describes it for users and is run as a test of this package.
//
// A Handler turns requests into calls of a service.Backend, and errors into
// problems (RFC 9457). It makes no IDs itself, opens no port and knows no
// store.
//
// Do not use this package to read what a server answers: that is what a client
// is for.
package httpapi
