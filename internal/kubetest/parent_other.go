//go:build !linux

package kubetest

import "os/exec"

// endWithParent does nothing: only Linux supports it.
func endWithParent(*exec.Cmd) {}
