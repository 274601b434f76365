// Package inspect reads an ID whose layout, or even encoding, is unknown: it
// tries the known layouts and encodings, and lists for each reading what speaks
// for and against it.
//
// It returns data and prints nothing; the command line and the HTTP API present
// it. All of it is safe for concurrent use, except a Summary.
//
// If layout and encoding are known and speed matters, use
// firn.Layout.Decompose. Do not base decisions on a guess: two formats can have
// the same bits, and then only the maker of the ID knows which one it is.
package inspect
