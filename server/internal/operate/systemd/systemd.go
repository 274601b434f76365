// Package systemd notifies the service manager that started the process.
package systemd

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

// A Notifier notifies systemd, if that started this process as a service with
// Type=notify (see sd_notify(3)). The methods of the zero value do nothing.
type Notifier struct {
	socket   string        // "" means none
	watchdog time.Duration // 0 if it does not restart silent services
	log      *slog.Logger
}

// NotifierFrom reads the variables that systemd sets. log receives the failures
// of notifications.
func NotifierFrom(getenv func(string) string, log *slog.Logger) Notifier {
	n := Notifier{socket: getenv("NOTIFY_SOCKET"), log: log}
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return n // for another process of the service
	}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// notify sends lines of NAME=VALUE. A failure is only logged.
func (n Notifier) notify(lines ...string) {
	if n.socket == "" {
		return
	}
	// An @ begins an abstract name.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(strings.Join(lines, "\n")))
		_ = conn.Close()
	}
	if err != nil {
		n.log.Warn("notifying the service manager failed", "message", lines[0], "error", err)
	}
}

// Ready reports that requests are answered.
func (n Notifier) Ready(url string) { n.notify("READY=1", "STATUS=Serving on "+url) }

// Stopping reports that the server is about to end, and within how much time.
func (n Notifier) Stopping(within time.Duration) {
	n.notify("STOPPING=1", "STATUS=Finishing requests in progress",
		fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", within.Microseconds()))
}

// PingWatchdog reports twice per interval that the server is alive, until ctx
// is done. Its goroutine waits for a processor like those of requests.
func (n Notifier) PingWatchdog(ctx context.Context) {
	if n.socket == "" || n.watchdog == 0 {
		return
	}
	ticker := time.NewTicker(n.watchdog / 2)
	defer ticker.Stop()
	for {
		n.notify("WATCHDOG=1")
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
