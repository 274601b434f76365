// Package grant gives out node IDs so that no two generators ever have the
// same number for the same time, whatever clocks do and however long a process
// is paused.
//
// A number is held for a window of time that is written down in a Store before
// it is used, and a later owner begins where the window before ended. That
// rests on the store's compare-and-swap alone: not on leases, locks or clocks.
//
// This package has the Store contract. It does no I/O and knows no database:
// the packages beside it do, each named after what it stores in.
package grant
