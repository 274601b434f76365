package service

import "errors"

// A Need is what a client must be allowed to do.
type Need int

// The needs. Each is of a role; what a role may do beside it is the Guard's business.
const (
	Anything Need = iota // whoever asks: health, and what this is
	Generate             // IDs of the sequencer that is named
	Inspect              // what an ID says
	Read                 // what the fleet does: of a sequencer where one is named, else at all
	ReadAll              // what it does, of every sequencer
	Admin                // to change it
)

// What is wrong with who asks.
var (
	ErrUnauthorized = errors.New("who asks is not known")
	ErrForbidden    = errors.New("who asks may not do that")
)
