//go:build unix

package e2e

import (
	"testing"
	"time"
)

// TestDirectoryChaos: processes make IDs with node IDs from one directory,
// while they are killed and stopped at any point. Every ID is checked.
func TestDirectoryChaos(t *testing.T) {
	f := newFleet(t, chaosTask("dir:"+t.TempDir()+"?create=true&volatile=true"))
	for i := range 8 {
		f.start(i)
	}
	quiet := func() (time.Duration, func()) { return 0, func() {} }
	c := &chaos{t: t, r: newRand(t), f: f, faults: map[string]fault{"no fault of the store": quiet}, least: time.Second}
	c.run(max(soakTime(), 10*time.Second), func() bool { return true })
	f.kill()
	c.report("a directory")
}
