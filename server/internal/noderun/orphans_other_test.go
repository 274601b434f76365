//go:build unix && !linux

package noderun

const endsWithParent = false
