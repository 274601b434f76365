package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/service"
)

// Values of --resp-integers.
const (
	allowIntegers = "allow"
	refuseUnsafe  = "refuse-unsafe"
)

var defaultLimits = service.Limits{}.WithDefaults()

// limitFlags adds the flags for limits of requests and connections.
func (s *serveCmd) limitFlags(cmd *cobra.Command) {
	f, l := cmd.Flags(), &s.Limits
	numberVar(cmd, &l.Count, "max-ids-per-call", "", fmt.Sprintf("maximum number of IDs per request, up to %d", service.MaxCount))
	sizeVar(cmd, &l.Body, "max-body", "maximum size of an HTTP body, a gRPC message or a RESP argument, 1KiB to 16MiB")
	sizeVar(cmd, &l.Header, "max-header", "maximum size of HTTP and gRPC headers, 4KiB to 1MiB")
	f.DurationVar(&l.Read, "read-timeout", l.Read, "how long a request, or a connection's first bytes, may take to arrive, 100ms to 10m")
	f.DurationVar(&l.Write, "write-timeout", l.Write, "how long a client may take to read an answer, 100ms to 10m")
	f.DurationVar(&l.Idle, "idle-timeout", l.Idle, "how long HTTP and gRPC connections are kept between requests, 1s to 24h")
	f.DurationVar(&s.RESPIdle, "resp-idle-timeout", s.RESPIdle, "how long RESP connections are kept between commands, 1s to 24h; 0 means forever")
	wordVar(cmd, &s.integers, "resp-integers", "MODE",
		"INCR for IDs above 2^53, which JavaScript rounds: allow or refuse-unsafe", allowIntegers, refuseUnsafe)
}

// sizeVar adds a flag for a number of bytes.
func sizeVar[T int | uint64](cmd *cobra.Command, n *T, name, usage string) {
	parse := func(s string) (T, error) {
		v, err := parseSize(s)
		return T(v), err
	}
	cmd.Flags().Var(&value[T]{n, parse, showSize[T], "SIZE"}, name, usage)
}

func showSize[T int | uint64](n T) string { return formatSize(uint64(n)) }
