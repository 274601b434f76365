// Package e2e tests the console in a real browser. It has no code of its own.
//
// It needs Chromium, as Debian's package of that name has it, and says SKIPPED
// without. Where the module stands inside the repository, screenshots are left
// in build/console.
package e2e
