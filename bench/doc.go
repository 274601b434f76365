// Package bench measures Firn's library and server beside their peers. It has
// only benchmarks: make bench-core and make bench run them, and print a format
// that benchstat compares. docs/performance.md says what the figures mean.
//
// Figures of two runs differ by more than most changes do. So a subject and
// its reference take turns within one benchmark, and the ratio is a figure of
// its own, such as x-add: times an atomic add.
package bench
