//go:build !linux

package etcdstore

import "os/exec"

// endWithParent does nothing: only Linux supports it.
func endWithParent(*exec.Cmd) {}
