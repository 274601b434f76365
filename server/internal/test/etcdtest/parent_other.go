//go:build unix && !linux

package etcdtest

import "os/exec"

// EndWithParent does nothing: only Linux supports it.
func EndWithParent(*exec.Cmd) {}
