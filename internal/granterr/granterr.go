// Package granterr has the errors of package grant that those of package client
// match too, so that a program can check the same errors in a process with a
// node ID of its own and in a client of servers. They are here because client
// must not depend on grant. Package grant documents them.
package granterr

import (
	"errors"
	"fmt"
)

// The errors of package grant with the same names.
var (
	ErrNotFound       = errors.New("grant: sequencer not found")
	ErrDestroyed      = errors.New("grant: the sequencer is destroyed")
	ErrDetached       = errors.New("grant: the sequencer is detached")
	ErrMoved          = fmt.Errorf("%w: it was moved to another store", ErrDetached)
	ErrNodesExhausted = errors.New("grant: no node ID is free")
	ErrClockBehind    = errors.New("grant: the clock is far behind those of the other members")
	ErrClockAhead     = errors.New("grant: the clock is far ahead of those of the store or the other members")
	ErrStoreWentBack  = errors.New("grant: the store went back to an earlier state; fence the sequencer (firn node " +
		"fence) before IDs are made again")
)
