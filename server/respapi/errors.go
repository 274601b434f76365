package respapi

import "fmt"

// codeErr is the first word of errors about a command itself; those of other
// errors are in the registry of package service.
const codeErr = "ERR"

// A requestError says what is wrong with a command. Nothing was taken for it.
type requestError string

func (e requestError) Error() string { return string(e) }

func requestErrorf(format string, a ...any) error { return requestError(fmt.Sprintf(format, a...)) }
