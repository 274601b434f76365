//go:build linux || darwin

package dirstore

import "fmt"

// childMain is the program of processes that tests start.
func childMain(role string) error {
	switch role {
	case "count":
		return count(false)
	case "count and stop":
		return count(true)
	case "share":
		return shareStore()
	case "try":
		return tryStore()
	}
	return fmt.Errorf("unknown role %q", role)
}
