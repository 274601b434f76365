//go:build !linux && !darwin

package doctor

import "errors"

var errNotHere = errors.New("not on this system")

func freeBytes(string) (uint64, error) { return 0, errNotHere }
