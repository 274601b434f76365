// Package inspect reads an ID when its layout, or even the way it is written,
// is not known: it tries the known layouts and encodings, and says for each
// reading what speaks for it and what against.
//
// It returns data and prints nothing. The command line and the HTTP API show
// what it says. All of it may be used by many goroutines at once, except a
// Reader.
//
// Where layout and encoding are known and it comes to speed, use
// firn.Layout.Decompose, or a Reader for text in and JSON out. Do not use a
// guess to decide anything: two formats can have the same bits, and then only
// whoever made the ID knows.
package inspect
