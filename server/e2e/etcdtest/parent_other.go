//go:build unix && !linux

package etcdtest

import "os/exec"

// EndWithParent does nothing: only Linux can.
func EndWithParent(*exec.Cmd) {}
