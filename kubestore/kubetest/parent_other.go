//go:build !linux

package kubetest

import "os/exec"

// endWithParent does nothing: only Linux can.
func endWithParent(*exec.Cmd) {}
