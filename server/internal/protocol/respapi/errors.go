package respapi

import "fmt"

// codeErr is the first word of errors about a command itself. The registry of
// package service has those of other errors.
const codeErr = "ERR"

// A requestError is an error in a command. No ID was taken.
type requestError string

func (e requestError) Error() string { return string(e) }

func requestErrorf(format string, a ...any) error { return requestError(fmt.Sprintf(format, a...)) }
