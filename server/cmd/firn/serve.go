package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/operate/config"
	"github.com/firnid/firn/server/internal/operate/issued"
	"github.com/firnid/firn/server/internal/operate/storehealth"
	"github.com/firnid/firn/server/internal/operate/systemd"
	"github.com/firnid/firn/server/internal/operate/tracing"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/server"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/stores"
)

// defaultListen is a loopback address, where neither TLS nor tokens are needed.
const defaultListen = "127.0.0.1:3476"

// closeLimit is how long a server may take to give its node IDs back after the
// last request.
const closeLimit = 5 * time.Second

// A serveCmd has the flags of the command serve. Those of the server's
// configuration are set there; serverConfig completes it.
type serveCmd struct {
	server.Config
	logFlags

	configPath string
	file       atomic.Pointer[config.File] // its contents; nil without a file
	from       origin                      // of values that no flag sets
	args       []string                    // the command line
	getenv     func(string) string

	listen           []string
	listenOnly       [3]string // addresses for only HTTP, gRPC and RESP
	veilKeysPath     string    // path of the file
	issueLogPath     string    // path of the file, or stdout
	opened           openedFiles
	badLayout        bool // the given layout could not be read
	store            string
	node             string
	allowLocal       bool
	createOnFirstUse bool
	respIntegers     string // allowIntegers or refuseUnsafe
	traces           tracing.Config

	drainDelay   time.Duration
	drainTimeout time.Duration
	insecure     bool
	waitForStore bool
}

// newServeCmd returns the defaults.
func newServeCmd() *serveCmd {
	return &serveCmd{
		Config: server.Config{
			MaxConns: listen.DefaultMaxConns, MaxSequencers: service.DefaultMaxSequencers,
			RequestTimeout: service.DefaultRequestTimeout, Limits: defaultLimits,
			Sequencers: sequencer.Options{Layout: firn.Default()},
		},
		logFlags:         defaultLog(),
		listen:           []string{defaultListen},
		respIntegers:     allowIntegers,
		drainTimeout:     15 * time.Second,
		createOnFirstUse: true,
		waitForStore:     true,
	}
}

func newServe(a *app) *cobra.Command {
	s := newServeCmd()
	cmd := command("serve", noArgs, func(cmd *cobra.Command, _ []string) error {
		_, s.args, _ = cmd.Root().Find(a.args)
		wrong, err := s.load(cmd.Flags(), cmp.Or(s.configPath, a.getenv(configEnv)), a.getenv)
		if err != nil {
			return err
		}
		return s.run(cmd.Context(), a, wrong)
	})
	s.flags(cmd)
	return cmd
}

// flags adds all flags. A configuration file can set all but the first.
func (s *serveCmd) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.configPath, "config", "", "configuration `FILE`, see firn config --help (default $"+configEnv+")")
	f.StringSliceVar(&s.listen, "listen", s.listen,
		"`ADDRESS` to listen on for all protocols; port 0 takes a free port")
	f.StringVar(&s.listenOnly[0], "listen-http", "", "`ADDRESS` to listen on for HTTP only")
	f.StringVar(&s.listenOnly[1], "listen-grpc", "", "`ADDRESS` to listen on for gRPC only")
	f.StringVar(&s.listenOnly[2], "listen-resp", "", "`ADDRESS` to listen on for RESP only")
	f.StringVar(&s.TLS.Cert, "tls-cert", "", "PEM `FILE` with the server's certificate")
	f.StringVar(&s.TLS.Key, "tls-key", "", "PEM `FILE` with the key of --tls-cert")
	f.StringVar(&s.TLS.ClientCA, "client-ca", "", "PEM `FILE` with the authorities of client certificates")
	f.BoolVar(&s.TLS.Require, "require-client-cert", false,
		"refuse clients without a certificate signed by --client-ca")
	f.StringVar(&s.TokenFile, "tokens", "", "`FILE` with the permissions of tokens and certificates")
	f.StringVar(&s.Advertise, "advertise", "",
		"`ADDRESS` of this server in lists of servers (default the host's name and port)")
	numberVar(cmd, &s.MaxConns, "max-connections", "", "maximum number of connections per address")
	layoutVar(cmd, &s.Sequencers.Layout, parseGeneratedLayout, "layout of the IDs")
	storeVar(cmd, &s.store)
	nodeVar(cmd, &s.node, "static node ID, pinned by --store")
	nodesVar(cmd, &s.Sequencers.Nodes, "node IDs that may be taken from the store (default all of the layout)")
	f.BoolVar(&s.allowLocal, "allow-local-mac", false,
		"let --node if:NAME use a MAC address that was assigned by software")
	clockVars(cmd, &s.Sequencers.AllowClockBehind, &s.Sequencers.AllowClockAhead)
	durationVar(cmd, &s.Sequencers.MaxAhead, "max-ahead",
		"how far IDs may run ahead of the clock in a burst (default the layout's; 5ms with a static node)")
	numberVar(cmd, &s.MaxSequencers, "max-sequencers", "", "maximum number of sequencers in use")
	f.DurationVar(&s.RequestTimeout, "request-timeout", s.RequestTimeout, "how long a request may wait for its IDs")
	f.DurationVar(&s.drainDelay, "drain-delay", s.drainDelay,
		"how long to serve after a signal; /readyz answers 503 and HTTP clients are asked to reconnect")
	f.DurationVar(&s.drainTimeout, "drain-timeout", s.drainTimeout,
		"how long requests may take to finish when the server stops")
	s.limitFlags(cmd)
	s.logFlags.flags(cmd)
	f.StringVar(&s.issueLogPath, "issue-log", "",
		"`FILE`, or stdout, for a line about each answer with IDs, see firn who --help")
	f.StringVar(&s.traces.Endpoint, "tracing-endpoint", "",
		"`URL` of an OpenTelemetry collector for traces (default $OTEL_EXPORTER_OTLP_ENDPOINT, or none)")
	f.BoolVar(&s.insecure, "insecure", false, "allow any listen address, even without TLS or tokens")
	f.StringSliceVar(&s.Hosts, "allow-host", nil,
		"`NAME` for which to answer HTTP requests, in addition to localhost, with neither TLS nor tokens")
	f.StringSliceVar(&s.ForwardTo, "forward-to", nil,
		"`URL`s of other servers of the store, to ask while this one has no node ID")
	f.StringVar(&s.ForwardTokenFile, "forward-token", "", "`FILE` with this server's token for --forward-to")
	f.StringVar(&s.veilKeysPath, "veil-keys", "", "`FILE` with the keys of veiled IDs (format=veiled)")
	f.BoolVar(&s.waitForStore, "wait-for-store", s.waitForStore,
		"if the store is unreachable, start without it and keep trying; otherwise exit")
	f.BoolVar(&s.createOnFirstUse, "create-on-first-use", s.createOnFirstUse,
		"create a sequencer when its name is first used; false refuses unknown names")
}

// run listens and serves until ctx is done. It returns all invalid values at
// once, together with those in wrong.
func (s *serveCmd) run(ctx context.Context, a *app, wrong faults) error {
	endpoints, more := s.check(true)
	wrong = append(wrong, more...)
	log := s.logger(a)
	for _, name := range unknownVars(os.Environ(), s.node) {
		log.Warn("ignoring unknown environment variable", "name", name)
	}
	if err := append(wrong, s.checkFiles()...).error(s.from); err != nil {
		return err
	}
	// A server without files to reload handles SIGHUP too: the signal would end
	// the program.
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	s.traces.Version, s.traces.Logger = version, log
	traces, endTraces, err := tracing.Start(ctx, s.traces)
	if err != nil {
		return misuse("see docs/tracing.md", "traces: %w", err)
	}
	defer endTraces()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c, err := s.serverConfig(ctx, a, log, fail)
	if err != nil {
		return err
	}
	if c.Store != nil {
		defer c.Store.Close()
	}
	c.Tracing = traces
	if s.issueLogPath != "" {
		name, _ := os.Hostname()
		name += " " + strings.Join(textsOf(endpoints), " ")
		if c.IssueLog, err = issued.Open(s.issueLogPath, a.stdout.Writer, cmp.Or(s.Advertise, name), log); err != nil {
			return failed("", "issue log: %w", err)
		}
	}
	srv, err := server.New(c)
	if err != nil {
		return misuse("", "%w", err)
	}
	for _, p := range endpoints {
		if err := p.open(); err != nil {
			_ = srv.Shutdown(context.WithoutCancel(ctx))
			return err
		}
		defer p.listener.Close() // the server has closed it, if all could be opened
	}
	if c.IssueLog != nil {
		c.IssueLog.Start()
		defer func() {
			if err := c.IssueLog.Close(); err != nil {
				log.Warn("issue log: its end was lost", "error", err)
			}
		}()
	}
	// After the first signal, a second one ends the program at once.
	reset := context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	defer reset()
	if err := s.serve(ctx, a, log, srv, endpoints, hup); err != nil {
		return err
	}
	if refused, ok := errors.AsType[*exitError](context.Cause(ctx)); ok { // by a store that the server waited for
		return refused
	}
	log.Info("stopped")
	return nil
}

// staticConfig returns the source of IDs without a store.
func (s *serveCmd) staticConfig() *service.StaticBackendConfig {
	c := &service.StaticBackendConfig{Layout: s.Sequencers.Layout}
	if only := s.Sequencers.Nodes; only != nil {
		c.Node = only.Lo
	}
	if ahead := s.Sequencers.MaxAhead; ahead != nil {
		c.Options = &firn.Options{MaxAhead: *ahead}
	}
	return c
}

// isStatic reports whether the node ID is static.
func (s *serveCmd) isStatic() bool { return s.node != "" && s.store == "" }

// serverConfig returns the configuration of the server, from values that check
// has accepted. Its Store is open, or is being waited for; fail ends the server
// if the store turns out to be wrong.
func (s *serveCmd) serverConfig(ctx context.Context, a *app, log *slog.Logger, fail func(error),
) (c server.Config, err error) {
	c = s.Config
	c.RESPRefuseUnsafe, c.VeilKeys = s.respIntegers == refuseUnsafe, s.opened.veilKeys
	c.Version, c.Logger = version, log
	form.WarnOfReaders(s.veilKeysPath, func(text string) { log.Warn(text) })
	if s.isStatic() {
		log.Warn("static node ID: another server with the same one makes the same IDs",
			"node", s.node, "hint", "give each its own --node, or share a --store")
		if a.getenv(storeEnv) != "" {
			log.Warn("static node ID: ignoring "+storeEnv, "hint", "add --store to pin the number in a store")
		}
		if f := s.file.Load(); f != nil && len(f.Templates) > 0 {
			log.Warn("static node ID: ignoring the templates of the configuration file",
				"hint", "add --store to use their layouts, prefixes and other settings")
		}
		c.Static = s.staticConfig()
		return c, nil
	}
	c.Sequencers.Now, c.Sequencers.MustExist, c.Template = a.clock, !s.createOnFirstUse, s.template
	open := func(ctx context.Context) (grant.Store, error) {
		if err := a.checkDirectory(s.store); err != nil {
			return nil, err
		}
		return a.openStore(ctx, s.store, false, func(format string, args ...any) {
			log.Warn("store of this machine", "note", fmt.Sprintf(format, args...))
		})
	}
	if s.waitForStore {
		c.Store, err = storehealth.OpenOrWait(ctx, open, log, fail)
	} else {
		c.Store, err = open(ctx)
	}
	e, ok := errors.AsType[*exitError](err)
	if ok && s.store == "" && slices.Equal(s.listen, []string{defaultListen}) && a.container() != "" {
		e.hint += "; and serve other machines: --listen :3476 (FIRN_LISTEN) with TLS and tokens, or with " +
			"--insecure on a private network"
	}
	return c, err
}

// serve answers requests until ctx is done, and then finishes those in
// progress. A signal from hup reloads files.
func (s *serveCmd) serve(ctx context.Context, a *app, log *slog.Logger, srv *server.Server,
	endpoints []*endpoint, hup <-chan os.Signal) error {
	listeners := make([]server.Listener, len(endpoints))
	for i, p := range endpoints {
		listeners[i] = server.Listener{Listener: p.listener, Only: p.only}
	}
	defer runtime.KeepAlive(ballast(a.getenv))
	var failure error
	ended := make(chan struct{})
	go func() { failure = srv.Serve(listeners...); close(ended) }()
	s.greet(a, log, endpoints)
	notifier := systemd.NotifierFrom(a.getenv, log)
	notifier.Ready(endpoints[0].url())
	alive, dead := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { notifier.PingWatchdog(alive) })
	background.Go(func() { s.reloadOnSignal(alive, hup, log, srv) })
	defer background.Wait()
	defer dead()

	select {
	case <-ended:
	case <-ctx.Done():
		log.Info("signal received", "hint", "a second signal stops the server at once, without giving node IDs back")
	}
	notifier.Stopping(s.drainDelay + s.drainTimeout + closeLimit)
	srv.Drain()
	if s.drainDelay > 0 {
		// Load balancers must be able to ask /readyz, so the port stays open.
		log.Info("draining: /readyz answers 503, requests are still served", "delay", s.drainDelay.String())
		select {
		case <-ended:
		case <-time.After(s.drainDelay):
		}
	}
	log.Info("stopping: requests in progress may finish", "limit", s.drainTimeout.String())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drainTimeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	<-ended
	switch {
	case failure != nil:
		return failed("", "serve: %w", failure)
	case errors.Is(err, context.DeadlineExceeded):
		return failed("give them more time with --drain-timeout",
			"requests were cut off because they had not finished after %v", s.drainTimeout)
	case err != nil:
		return failed("", "stop: %w", err)
	}
	return nil
}

// ballast returns memory that is never touched, and so takes none. Go collects
// garbage whenever the heap has doubled, which a server that keeps a few MiB
// does dozens of times a second: a tenth of its processor time. With the
// ballast, its heap grows to 16 MiB first. A limit of memory does not change
// that, and is far above.
func ballast(getenv func(string) string) []byte {
	if getenv("GOGC") != "" {
		return nil // the operator has decided
	}
	return make([]byte, 8<<20)
}

// hupEvery is the minimum time between two reloads by signals, because each can
// log a line. Of signals that come sooner, one is handled later.
const hupEvery = time.Second

// reloadOnSignal reloads files at signals from hup, also while the server
// drains, until ctx is done.
func (s *serveCmd) reloadOnSignal(ctx context.Context, hup <-chan os.Signal, log *slog.Logger, srv *server.Server) {
	for {
		select {
		case <-hup:
			s.reloadConfig(log)
			srv.Reload()
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(hupEvery):
		case <-ctx.Done():
			return
		}
	}
}

// greet reports where the server listens.
func (s *serveCmd) greet(a *app, log *slog.Logger, endpoints []*endpoint) {
	if s.insecure {
		log.Warn("insecure: anyone who can reach this address can take IDs and read other clients' traffic")
	}
	source, name := "node", s.node
	if !s.isStatic() {
		url, _ := a.storeURL(s.store)
		source, name = "store", stores.Redact(url)
	}
	for _, p := range endpoints {
		log.Info("serving", "url", p.url(), "layout", s.Sequencers.Layout.String(), source, name)
	}
	url := endpoints[0].url()
	if !isTerminal(a.stderr) || !strings.HasPrefix(url, "http") {
		return
	}
	host, port, _ := net.SplitHostPort(listen.Reachable(endpoints[0].listener.Addr()))
	fmt.Fprintf(a.stderr,
		"\n  Firn serves %s. Try this in another terminal:\n\n  curl -s -X POST %s/v1/sequencers/orders/next\n"+
			"  redis-cli -h %s -p %s NEXT orders 3\n\n", url, url, host, port)
}
