//go:build !linux

package main

import "time"

var began = time.Now()

// threadTime returns elapsed time: other systems do not report the time of a
// thread.
func threadTime() time.Duration { return time.Since(began) }

// processTime returns elapsed time.
func processTime() time.Duration { return time.Since(began) }

// runDelay is unknown here.
func runDelay() time.Duration { return 0 }

// pin does nothing here.
func pin(int) bool { return false }
