// Package memstore keeps grants in memory. It is for tests, simulations and
// single-process programs whose IDs need not be unique beyond their lifetime.
//
// Nothing survives the process. A program that restarts begins with an empty
// store and may repeat the IDs of the previous run: use package dirstore on one
// machine, and a database on several.
package memstore
