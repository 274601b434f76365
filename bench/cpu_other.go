//go:build !linux

package main

import "time"

var began = time.Now()

// threadTime is the time that passed: other systems do not tell a thread's.
func threadTime() time.Duration { return time.Since(began) }

// processTime is the time that passed.
func processTime() time.Duration { return time.Since(began) }

// runDelay is unknown here.
func runDelay() time.Duration { return 0 }

// pin does nothing here.
func pin(int) bool { return false }
