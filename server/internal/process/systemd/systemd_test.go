package systemd

import "testing"

// TestWatchdogOfAnother: the watchdog of another process of the service is left
// alone.
func TestWatchdogOfAnother(t *testing.T) {
	m := FromEnv(func(name string) string {
		return map[string]string{"NOTIFY_SOCKET": "x", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}[name]
	}, nil)
	if m.watchdog != 0 {
		t.Errorf("the interval of the watchdog is %v, want 0", m.watchdog)
	}
}
