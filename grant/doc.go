// Package grant assigns node IDs so that no two generators ever have the same
// one for the same time, whatever clocks do and however long a process is
// suspended.
//
// A node ID is held for a window of time that is recorded in a Store before it
// is used, and the next owner begins where the previous window ended. That
// relies only on the store's compare-and-swap, not on leases, locks or clocks.
//
// This package defines the Store contract. It does no I/O and knows no
// database: that is left to its subpackages, which are named after their
// databases.
package grant
