// Package arch contains the rules of the repository as tests: which package may
// import which, that the library needs only the standard library, and how
// packages are named and documented. It exports nothing.
//
// The table of imports and the exceptions are in arch_test.go, and the rules in
// rules_test.go. bite_test.go shows with small trees that each rule detects
// violations.
//
// The rules apply only to this repository. They do not replace go vet and
// staticcheck, which make test-all runs as well.
package arch
