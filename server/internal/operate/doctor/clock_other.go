//go:build !linux

package doctor

import (
	"errors"
	"time"
)

func clockState() (synced bool, bound time.Duration, err error) {
	return false, 0, errors.New("not supported on this system")
}
