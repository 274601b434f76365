// Package config reads firn.yaml, and what Hazelcast's configuration has of
// Flake ID generators, and finds the template of a sequencer by its name.
//
// It does no I/O, and knows no flags: the caller says which settings there are.
package config
