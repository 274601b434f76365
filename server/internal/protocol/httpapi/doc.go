// Package httpapi serves IDs over HTTP: batches of a named sequencer as JSON,
// text or packed octets, readings of single IDs, and changes of sequencers.
// docs/http.md describes the API for users, and a test runs its commands.
//
// A Handler turns requests into calls of a service.Front, and errors into
// problems (RFC 9457). It makes no IDs itself, opens no port and knows no
// store.
//
// To use the API of a server, use package client instead.
package httpapi
