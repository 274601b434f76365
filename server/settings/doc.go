// Package settings reads firn.yaml, and what Hazelcast's configuration has of Flake ID
// generators.
//
// It does no I/O, and knows no flags: who uses it says which settings there are.
package settings
