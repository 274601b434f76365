//go:build !unix

package main

// servers measures nothing: the code that starts other servers is for Unix.
func (r *run) servers(string) { r.skip("servers", "they are measured on Unix only") }

// storage measures nothing; see servers.
func (r *run) storage(string) { r.skip("stores", "they are measured on Unix only") }
