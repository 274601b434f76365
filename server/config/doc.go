// Package config finds what is configured for a sequencer by its name.
//
// It is not for reading files: nothing here does I/O.
package config
