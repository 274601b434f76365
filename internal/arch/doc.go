// Package arch holds the rules of the house as tests: which package may import
// which, that the library needs nothing but the standard library, and how
// packages are named and documented. It exports nothing.
//
// The table of imports and the exceptions are in arch_test.go, the rules in
// rules_test.go, and bite_test.go shows on small trees that each rule bites.
//
// The rules are about this repository only. They do not replace go vet or
// staticcheck, which make test runs beside them.
package arch
