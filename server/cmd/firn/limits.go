package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/service"
)

// limitFlags are the limits of requests and connections of serve.
type limitFlags struct {
	maxCount   uint64
	maxBody    int
	maxHeader  int
	read       time.Duration
	write      time.Duration
	idle       time.Duration
	idleOfRESP time.Duration

	integersOfRESP string // allowIntegers or refuseUnsafe
}

// Values of --resp-integers.
const (
	allowIntegers = "allow"
	refuseUnsafe  = "refuse-unsafe"
)

// newLimitFlags returns the defaults.
func newLimitFlags() limitFlags {
	return limitFlags{
		maxCount: service.MaxCount, maxBody: service.DefaultBody, maxHeader: service.DefaultHeader,
		read: service.DefaultRead, write: service.DefaultWrite, idle: service.DefaultIdle,
		integersOfRESP: allowIntegers,
	}
}

// flags adds the flags of limits.
func (l *limitFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	numberVar(cmd, &l.maxCount, "max-ids-per-call", "", fmt.Sprintf("maximum number of IDs per request, up to %d", service.MaxCount))
	sizeVar(cmd, &l.maxBody, "max-body", "maximum size of an HTTP body, a gRPC message or a RESP argument, 1KiB to 16MiB")
	sizeVar(cmd, &l.maxHeader, "max-header", "maximum size of HTTP and gRPC headers, 4KiB to 1MiB")
	f.DurationVar(&l.read, "read-timeout", l.read, "how long a request, or a connection's first bytes, may take to arrive, 100ms to 10m")
	f.DurationVar(&l.write, "write-timeout", l.write, "how long a client may take to read an answer, 100ms to 10m")
	f.DurationVar(&l.idle, "idle-timeout", l.idle, "how long HTTP and gRPC connections are kept between requests, 1s to 24h")
	f.DurationVar(&l.idleOfRESP, "resp-idle-timeout", l.idleOfRESP, "how long RESP connections are kept between commands, 1s to 24h; 0 means forever")
	wordVar(cmd, &l.integersOfRESP, "resp-integers", "MODE", "INCR for IDs above 2^53, which JavaScript rounds: allow or refuse-unsafe", allowIntegers, refuseUnsafe)
}

// sizeVar adds a flag for a number of bytes.
func sizeVar[T int | uint64](cmd *cobra.Command, n *T, name, usage string) {
	parse := func(s string) (T, error) {
		v, err := textfmt.ParseSize(s)
		return T(v), err
	}
	cmd.Flags().Var(&value[T]{n, parse, showSize[T], "SIZE"}, name, usage)
}

func showSize[T int | uint64](n T) string { return textfmt.Size(uint64(n)) }

// checkLimits validates the flags of limits.
func (l *limitFlags) checkLimits() (all faults) {
	within(&all, "max-ids-per-call", l.maxCount, 1, service.MaxCount, asNumber)
	within(&all, "max-body", l.maxBody, 1<<10, 16<<20, showSize)
	within(&all, "max-header", l.maxHeader, 4<<10, 1<<20, showSize)
	within(&all, "read-timeout", l.read, 100*time.Millisecond, 10*time.Minute, time.Duration.String)
	within(&all, "write-timeout", l.write, 100*time.Millisecond, 10*time.Minute, time.Duration.String)
	within(&all, "idle-timeout", l.idle, time.Second, 24*time.Hour, time.Duration.String)
	if l.idleOfRESP != 0 {
		within(&all, "resp-idle-timeout", l.idleOfRESP, time.Second, 24*time.Hour, time.Duration.String)
	}
	return all
}

// within adds a fault if the value of a flag is not in a range.
func within[T cmp.Ordered](all *faults, flag string, v, from, to T, show func(T) string) {
	if v < from || v > to {
		all.add(flag, show(v), "", "it must be from %s to %s", show(from), show(to))
	}
}

func asNumber(n uint64) string { return strconv.FormatUint(n, 10) }

// limits returns the limits of HTTP and gRPC.
func (l *limitFlags) limits() server.Limits {
	return server.Limits{Count: int(l.maxCount), Body: l.maxBody, Header: l.maxHeader, Read: l.read, Write: l.write, Idle: l.idle}
}
