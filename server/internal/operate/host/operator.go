package host

import (
	"os"
	"os/user"
)

// Operator returns the user and the host of this process.
func Operator() (who, host string) {
	who = "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	host, _ = os.Hostname()
	return who, host
}
