package service

import (
	"errors"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// CheckName is grant.CheckName, with an error for clients. A valid name is one
// URL segment without escapes and one word of the RESP protocol, and never a
// path (.., a/b) or a flag (-n).
func CheckName(name string) error {
	if err := grant.CheckName(name); err != nil {
		return errors.New(textfmt.Message(err))
	}
	return nil
}

// problemOfName returns the error of CheckName as a Problem.
func problemOfName(name string) *Problem {
	if err := CheckName(name); err != nil {
		return Problemf(BadName, "%v", err)
	}
	return nil
}
