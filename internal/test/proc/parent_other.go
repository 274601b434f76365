//go:build !linux

package proc

import "os/exec"

// EndWithParent does nothing: only Linux supports it.
func EndWithParent(*exec.Cmd) {}
