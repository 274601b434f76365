//go:build linux || darwin

package dirstore

import "fmt"

// childMain is the program of processes that tests start.
func childMain(role string) error {
	switch role {
	case "share":
		return shareStore()
	case "try":
		return tryStore()
	}
	return fmt.Errorf("unknown role %q", role)
}
