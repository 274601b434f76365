package main

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

// A supervisor is the service manager that started serve and receives its
// state: systemd, for a service with Type=notify. The zero value means none.
type supervisor struct {
	socket   string        // "" means none
	watchdog time.Duration // 0 if it does not restart silent services
	log      *slog.Logger
}

// supervisor reads the variables that systemd sets, see sd_notify(3).
func (a *app) supervisor(log *slog.Logger) supervisor {
	s := supervisor{socket: a.getenv("NOTIFY_SOCKET"), log: log}
	if pid := a.getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return s // for another process of the service
	}
	if us, err := strconv.ParseInt(a.getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		s.watchdog = time.Duration(us) * time.Microsecond
	}
	return s
}

// tell sends lines of NAME=VALUE. If that fails, serve continues.
func (s supervisor) tell(lines ...string) {
	if s.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"}) // @ begins an abstract name
	if err == nil {
		_, err = conn.Write([]byte(strings.Join(lines, "\n")))
		_ = conn.Close()
	}
	if err != nil {
		s.log.Warn("notifying the service manager failed", "message", lines[0], "error", err)
	}
}

// ready reports that requests are answered.
func (s supervisor) ready(url string) { s.tell("READY=1", "STATUS=Serving on "+url) }

// stopping reports that the server is about to end, and within how much time.
func (s supervisor) stopping(within time.Duration) {
	s.tell("STOPPING=1", "STATUS=Finishing requests in progress", fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", within.Microseconds()))
}

// watch reports twice per interval that the server is alive, until ctx is done.
// Its goroutine waits for a processor like those of requests.
func (s supervisor) watch(ctx context.Context) {
	if s.socket == "" || s.watchdog == 0 {
		return
	}
	ticker := time.NewTicker(s.watchdog / 2)
	defer ticker.Stop()
	for {
		s.tell("WATCHDOG=1")
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
