package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/httpapi"
	"github.com/firnid/firn/server/stores"
)

// defaultListen is on loopback, as the server has neither TLS nor tokens yet.
const defaultListen = "127.0.0.1:3476"

// A serving is what the command serve was told.
type serving struct {
	listen         string
	layout         firn.Layout
	store          string
	node           string
	nodes          *sequencer.Range
	allowLocal     bool
	allowBehind    bool
	maxAhead       time.Duration
	givenAhead     bool
	maxNames       uint64
	requestTimeout time.Duration
	drainDelay     time.Duration
	drainTimeout   time.Duration
	logFormat      string
	insecure       bool

	stopBy time.Time // when all must have ended, once it is told to stop
}

func newServe(a *app) *cobra.Command {
	s := serving{
		listen:         defaultListen,
		layout:         firn.Default(),
		maxNames:       httpapi.DefaultMaxNames,
		requestTimeout: httpapi.DefaultLimit,
		drainTimeout:   15 * time.Second,
		logFormat:      "text",
	}
	cmd := &cobra.Command{
		Use:   "serve [--listen ADDRESS] [--store URL] [--layout LAYOUT] [--node NODE]",
		Short: "Hand out IDs over HTTP",
		Long: `Serve hands out IDs to programs in every language, over HTTP:

  curl -s http://127.0.0.1:3476/v1/sequencers/orders/next
  curl -s 'http://127.0.0.1:3476/v1/sequencers/orders/next?count=5&format=base62'
  curl -s -H 'Accept: text/plain' http://127.0.0.1:3476/v1/sequencers/orders/next

"orders" is a name of your choice: a sequencer. IDs are unique within one name.

A sequencer is created when its name is first used, with --layout and
--max-ahead; one that exists is served as it is. Any number of servers on one
store give IDs of the same names, and no two are equal, whatever clocks do and
however servers end.

` + storeHelp + `

With --node and no --store, no store is used: the number is static, and nothing
but you keeps it apart from those of other servers. Two servers with the same one
make the same IDs when they run at the same time. One after the other is safe,
also right after a crash, as long as the clock is not set back while none runs
and --max-ahead is not made smaller. With --store, --node pins the number. It is
` + nodeUsage + `.

There is no TLS and there are no tokens. So serve listens on loopback only, and
answers only requests to localhost, 127.0.0.0/8 or [::1]; --insecure lifts both.

SIGINT or SIGTERM ends it: requests under way finish first. Behind a load
balancer, set --drain-delay to longer than it takes to notice that /readyz says
503, such as 10s: until then the server goes on.`,
		Example: `  firn serve
  firn serve --layout hazelcast
  firn serve --store dir:/srv/firn --nodes 0..511
  firn serve --node env:NODE_ID --log-format json
  firn serve --listen 127.0.0.1:0`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.givenAhead = cmd.Flags().Changed("max-ahead")
			return s.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.Var(&value[string]{&s.listen, notEmpty, func(s string) string { return s }, "ADDRESS"}, "listen", "address to listen on; port 0 takes a free one")
	layoutVar(cmd, &s.layout, "layout of the IDs")
	storeVar(cmd, &s.store)
	f.Var(&value[string]{&s.node, notEmpty, nil, "NODE"}, "node", "a static number, or with --store a pinned one, see above")
	nodesVar(cmd, &s.nodes)
	f.BoolVar(&s.allowLocal, "allow-local-mac", false, "let --node if:NAME take an address that software made up")
	behindVar(cmd, &s.allowBehind)
	f.DurationVar(&s.maxAhead, "max-ahead", s.maxAhead, "how far IDs may run ahead of the clock in a burst (default the layout's; 5ms with a static node)")
	numberVar(cmd, &s.maxNames, "max-sequencers", "", "N", "how many names there can be")
	f.DurationVar(&s.requestTimeout, "request-timeout", s.requestTimeout, "how long a request may wait for its IDs")
	f.DurationVar(&s.drainDelay, "drain-delay", s.drainDelay, "how long to go on after SIGINT or SIGTERM, while /readyz says 503")
	f.DurationVar(&s.drainTimeout, "drain-timeout", s.drainTimeout, "how long requests may take to finish when the server stops")
	f.Var(&value[string]{&s.logFormat, parseLogFormat, func(s string) string { return s }, "FORMAT"}, "log-format", "text or json, on stderr")
	complete(cmd, "log-format", func() []string { return []string{"text", "json"} })
	f.BoolVar(&s.insecure, "insecure", false, "listen on any address and answer to any host name, without TLS or tokens")
	return cmd
}

func parseLogFormat(s string) (string, error) {
	if s != "text" && s != "json" {
		return "", errors.New("it is text or json")
	}
	return s, nil
}

// run listens and serves until ctx is done.
func (s *serving) run(ctx context.Context, a *app) error {
	address, err := s.resolve()
	if err != nil {
		return err
	}
	log := s.logger(a)
	backend, end, err := s.backend(ctx, a, log)
	if err != nil {
		return err
	}
	stopped := false
	defer func() {
		end()
		if stopped {
			log.Info("stopped")
		}
	}()
	listener, err := net.ListenTCP("tcp", address)
	if err != nil {
		hint := "--listen chooses another address; with port 0 it takes a free one"
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = fmt.Sprintf("another program listens there, perhaps another firn serve: stop it, or choose another port with --listen %s",
				net.JoinHostPort(address.IP.String(), "0"))
		}
		return failed(hint, "listen on %s: %w", address, cause(err))
	}
	// After the first signal, another one ends the program at once.
	reset := context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	defer reset()
	if err := s.serve(ctx, a, log, backend, listener); err != nil {
		return err
	}
	stopped = true
	return nil
}

// logger writes to stderr.
func (s *serving) logger(a *app) *slog.Logger {
	if s.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.stderr, nil))
	}
	return slog.New(slog.NewTextHandler(a.stderr, nil))
}

// cause is the last error of a chain: "address already in use" is all that a
// user needs of it.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// backend makes the source of IDs, and finds what is wrong with the flags. end
// gives back what it holds.
func (s *serving) backend(ctx context.Context, a *app, log *slog.Logger) (backend httpapi.Backend, end func(), err error) {
	if err := s.check(); err != nil {
		return nil, nil, err
	}
	node := uint64(0)
	if s.node != "" {
		if node, err = readNode(s.layout, s.node, s.allowLocal); err != nil {
			return nil, nil, err
		}
		if s.nodes != nil {
			return nil, nil, misuse("", "either --node or --nodes, not both")
		}
	}
	if s.node != "" && s.store == "" {
		o := &firn.Options{MaxAhead: staticAhead}
		if s.givenAhead {
			o.MaxAhead = s.maxAhead
		}
		backend, err := httpapi.NewStatic(httpapi.StaticConfig{Layout: s.layout, Node: node, Options: o, MaxNames: int(s.maxNames)})
		if err != nil {
			return nil, nil, misuse("", "%w", err)
		}
		log.Warn("static node: another server with the same node makes the same IDs", "node", s.node, "hint", "give each its own --node, or share a --store")
		if a.getenv(storeEnv) != "" {
			log.Warn("static node: "+storeEnv+" is not used", "hint", "add --store to pin the number in a store")
		}
		return backend, func() {}, nil
	}

	c := sequencer.Config{Layout: s.layout, Nodes: s.nodes, AllowClockBehind: s.allowBehind, Logger: log}
	if s.node != "" {
		c.Nodes = &sequencer.Range{Lo: node, Hi: node}
	}
	if c.Nodes != nil && c.Nodes.Hi > s.layout.MaxNode() {
		return nil, nil, misuse("", "--nodes %d..%d: layout %s has nodes 0 to %d", c.Nodes.Lo, c.Nodes.Hi, s.layout, s.layout.MaxNode())
	}
	if s.givenAhead {
		c.MaxAhead = &s.maxAhead
	}
	if ahead := grant.NewConfig(s.layout, 0); s.givenAhead {
		ahead.MaxAhead = s.maxAhead
		ahead.Window = max(ahead.Window, ahead.MinWindow())
		if err := ahead.Check(); err != nil {
			return nil, nil, misuse("", "--max-ahead: %w", err)
		}
	}
	store, err := a.openStore(ctx, s.store, false, func(text string) { log.Warn("store: " + text) })
	if err != nil {
		return nil, nil, err
	}
	cluster := httpapi.NewCluster(httpapi.ClusterConfig{Store: store, Config: c, MaxNames: int(s.maxNames)})
	return cluster, func() {
		// Within what is left of the drain, and a moment in any case.
		by := time.Now().Add(closing)
		if !s.stopBy.IsZero() && s.stopBy.Before(by) {
			by = later(s.stopBy, time.Now().Add(time.Second))
		}
		ctx, cancel := context.WithDeadline(context.Background(), by)
		defer cancel()
		if err := cluster.Close(ctx); err != nil {
			log.Warn("node numbers not given back: they are free when their windows end", "error", err)
		}
		store.Close()
	}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// check finds what is wrong with the flags that need nothing else.
func (s *serving) check() error {
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{
		{"max-ahead", s.maxAhead, 0},
		{"request-timeout", s.requestTimeout, time.Millisecond},
		{"drain-delay", s.drainDelay, 0},
		{"drain-timeout", s.drainTimeout, 0},
	} {
		if d.value < d.least {
			return misuse("", "--%s %v: the least is %v", d.flag, d.value, d.least)
		}
	}
	if s.maxNames < 1 || s.maxNames > 1<<30 {
		return misuse("", "--max-sequencers %d: it is a number from 1 to %d", s.maxNames, 1<<30)
	}
	if s.layout.ReadOnly() {
		return misuse("firn layout lists what can be made", "%w", errReadOnly(s.layout))
	}
	return nil
}

// resolve finds the address to listen on. It comes before listening, so that
// there is no moment at which a wrong one is open.
func (s *serving) resolve() (*net.TCPAddr, error) {
	address, err := net.ResolveTCPAddr("tcp", s.listen)
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return nil, failed("write the address as a number, such as "+defaultListen, "--listen %s: %w", s.listen, err)
	}
	if err != nil {
		return nil, misuse("it is HOST:PORT, such as "+defaultListen, "--listen %q: %w", s.listen, cause(err))
	}
	if !address.IP.IsLoopback() && !s.insecure {
		host, _, _ := net.SplitHostPort(s.listen)
		where := "that is not this machine's own loopback address"
		if host == "" || address.IP.IsUnspecified() {
			where = "that is every address of this machine"
		}
		return nil, misuse(fmt.Sprintf("use --listen %s, or --insecure where only programs that you trust can reach it",
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(address.Port))),
			"--listen %s: %s, and there is neither TLS nor a token to keep others out", s.listen, where)
	}
	return address, nil
}

// serve answers requests until ctx is done, and then those that are under way.
func (s *serving) serve(ctx context.Context, a *app, log *slog.Logger, backend httpapi.Backend, listener net.Listener) error {
	handler := httpapi.NewHandler(httpapi.Config{
		Backend: backend,
		Limit:   s.requestTimeout,
		AnyHost: s.insecure,
		Log:     log,
	})
	server := httpapi.NewServer(handler)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()

	if s.insecure {
		log.Warn("insecure: whoever reaches this address can take IDs, and sees those of others")
	}
	url := "http://" + reachable(listener.Addr())
	log.Info("serving", "url", url, "layout", s.layout.String(), "nodes", s.numbers(a))
	if a.lookOf(a.stderr).terminal {
		fmt.Fprintf(a.stderr, "\n  Firn serves %s. Try this in another terminal:\n\n  curl -s %s/v1/sequencers/orders/next\n\n", url, url)
	}

	select {
	case err := <-done:
		return failed("", "serve %s: %w", listener.Addr(), cause(err))
	case <-ctx.Done():
	}
	handler.Drain()
	if s.drainDelay > 0 {
		// Who asks /readyz must be able to: so the port stays open.
		log.Info("draining: /readyz says so, and requests are still taken", "delay", s.drainDelay.String())
		select {
		case err := <-done:
			return failed("", "serve %s: %w", listener.Addr(), cause(err))
		case <-time.After(s.drainDelay):
		}
	}
	log.Info("stopping: requests under way may finish", "limit", s.drainTimeout.String())
	s.stopBy = time.Now().Add(s.drainTimeout)
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), s.stopBy)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		server.Close()
		<-done
		return failed("--drain-timeout gives them more time", "requests were cut off that had not finished after %v", s.drainTimeout)
	}
	<-done
	return nil
}

// numbers says where node numbers come from.
func (s *serving) numbers(a *app) string {
	switch {
	case s.store == "" && s.node != "":
		return "static " + s.node
	case s.store != "":
		return stores.Redact(s.store)
	}
	if url := a.getenv(storeEnv); url != "" {
		return stores.Redact(url)
	}
	path, _ := a.statePath()
	return "dir:" + path
}

// reachable is the address under which a program on this machine reaches addr.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return addr.String()
}
