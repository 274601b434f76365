package main

import "testing"

// TestRun: a process without its store stops, and repeats nothing.
func TestRun(t *testing.T) {
	if err := run(t.Context()); err != nil {
		t.Error(err)
	}
}
