// Package config reads firn.yaml and the Flake ID generators of a Hazelcast
// configuration, and finds the template of a sequencer by its name.
//
// It does no I/O and knows no flags: the caller passes the known settings.
package config
