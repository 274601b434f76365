// Package memstore keeps grants in memory: for tests, simulations and programs
// of one process that lives as long as what its IDs must be unique for.
//
// Nothing survives the process. A program that starts again begins with an
// empty store and may repeat the IDs of the run before: use package dirstore on
// one machine, and a database on several.
package memstore
