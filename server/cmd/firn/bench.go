package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/server/internal/operate/load"
	"github.com/firnid/firn/server/internal/service"
)

// A benchCmd has the flags of the command bench.
type benchCmd struct {
	load.Options
	servers []string
	remote  remoteFlags
	asJSON  bool
}

func newBench(a *app) *cobra.Command {
	b := benchCmd{servers: []string{"http://" + defaultListen},
		Options: load.Options{Sequencer: "bench", Connections: 8, Count: 1, Duration: 10 * time.Second}}
	cmd := command("bench", noArgs, func(cmd *cobra.Command, _ []string) error { return b.run(cmd.Context(), a) })
	f := cmd.Flags()
	f.StringSliceVar(&b.servers, "server", b.servers, "`URL` of a server, or several: http, https, firn, firns or unix")
	f.StringVar(&b.Sequencer, "sequencer", b.Sequencer, "`NAME` of the sequencer")
	b.remote.vars(cmd)
	numberVar(cmd, &b.Connections, "connections", "", "number of clients, each with one request at a time")
	numberVar(cmd, &b.Count, "count", "", "IDs per request")
	f.DurationVar(&b.Duration, "duration", b.Duration, "how long to run")
	jsonVar(cmd, &b.asJSON)
	return cmd
}

// run puts load on the servers, and shows progress every second.
func (b *benchCmd) run(ctx context.Context, a *app) error {
	var wrong faults
	within(&wrong, "connections", b.Connections, 1, 10_000, strconv.Itoa)
	within(&wrong, "count", b.Count, 1, service.MaxCount, strconv.Itoa)
	within(&wrong, "duration", b.Duration, time.Millisecond, 24*time.Hour, time.Duration.String)
	if err := service.CheckName(b.Sequencer); err != nil {
		wrong.addError("sequencer", b.Sequencer, err)
	}
	err := wrong.error(nil)
	if err != nil {
		return err
	}
	if b.Client, err = b.remote.client(b.servers); err != nil {
		return err
	}
	var watch func(ids, requests uint64)
	if isTerminal(a.stderr) {
		second := 0
		watch = func(ids, requests uint64) {
			second++
			fmt.Fprintf(a.stderr, "\r\x1b[K%d s of %v: %s IDs/s in %s requests/s", second, b.Duration,
				groupDigits(ids), groupDigits(requests))
		}
	}
	l, err := load.Run(ctx, b.Options, watch)
	if watch != nil {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
	if err != nil {
		return noIDs(ctx, err, b.Sequencer, b.servers)
	}
	b.report(a, l)
	if l.Duplicates > 0 {
		return refused("check whether two servers use the same static node or different stores, or whether a "+
			"store was copied", "%s duplicate IDs", groupDigits(l.Duplicates))
	}
	return nil
}

// report prints the result.
func (b *benchCmd) report(a *app, l load.Result) {
	if b.asJSON {
		a.printJSON(l.JSON(&b.Options))
		return
	}
	var r rows
	r.add("IDs", "%s in %.1f s: %s per second", groupDigits(l.IDs), l.Took.Seconds(),
		groupDigits(uint64(float64(l.IDs)/l.Took.Seconds())))
	r.add("requests", "%s: %s per second, from %d clients", groupDigits(l.Requests),
		groupDigits(uint64(float64(l.Requests)/l.Took.Seconds())), b.Connections)
	r.add("latency", "p50 %v, p90 %v, p99 %v, p99.9 %v, longest %v", l.Quantile(50), l.Quantile(90),
		l.Quantile(99), l.Quantile(99.9), l.Quantile(100))
	if l.Failures > 0 {
		r.add("failed", "%s; the last: %v", groupDigits(l.Failures), l.Failure)
	}
	r.add("duplicates", "%s", map[bool]string{true: "none", false: groupDigits(l.Duplicates)}[l.Duplicates == 0])
	r.print(a.stdout, a.style())
}
