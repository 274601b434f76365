// Package e2e has tests of the whole over real servers, under faults. It is for
// no program.
package e2e
