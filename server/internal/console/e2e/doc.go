// Package e2e tests the console in a real browser. It has no code of its own.
//
// It needs Chromium, from Debian's package of that name, and otherwise prints
// SKIPPED. Inside the repository, it leaves screenshots in build/console.
package e2e
