package host

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A ServiceManager is the service manager that started this process: systemd,
// for a service with Type=notify (see sd_notify(3)). The zero value means none,
// and its methods do nothing.
type ServiceManager struct {
	socket   string        // "" means none
	watchdog time.Duration // 0 if it does not restart silent services
	log      *slog.Logger
}

// ManagerOf reads the variables that systemd sets. log receives the failures of
// notifications.
func ManagerOf(getenv func(string) string, log *slog.Logger) ServiceManager {
	m := ServiceManager{socket: getenv("NOTIFY_SOCKET"), log: log}
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m // for another process of the service
	}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		m.watchdog = time.Duration(us) * time.Microsecond
	}
	return m
}

// notify sends lines of NAME=VALUE. A failure is only logged.
func (m ServiceManager) notify(lines ...string) {
	if m.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"}) // @ begins an abstract name
	if err == nil {
		_, err = conn.Write([]byte(strings.Join(lines, "\n")))
		_ = conn.Close()
	}
	if err != nil {
		m.log.Warn("notifying the service manager failed", "message", lines[0], "error", err)
	}
}

// Ready reports that requests are answered.
func (m ServiceManager) Ready(url string) { m.notify("READY=1", "STATUS=Serving on "+url) }

// Stopping reports that the server is about to end, and within how much time.
func (m ServiceManager) Stopping(within time.Duration) {
	m.notify("STOPPING=1", "STATUS=Finishing requests in progress",
		fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", within.Microseconds()))
}

// Watch reports twice per interval that the server is alive, until ctx is done.
// Its goroutine waits for a processor like those of requests.
func (m ServiceManager) Watch(ctx context.Context) {
	if m.socket == "" || m.watchdog == 0 {
		return
	}
	ticker := time.NewTicker(m.watchdog / 2)
	defer ticker.Stop()
	for {
		m.notify("WATCHDOG=1")
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
