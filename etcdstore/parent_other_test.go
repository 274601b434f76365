//go:build !linux

package etcdstore

import "os/exec"

// endWithParent does nothing: only Linux can.
func endWithParent(*exec.Cmd) {}
