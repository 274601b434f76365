package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server"
	"github.com/firnid/firn/server/config"
	"github.com/firnid/firn/server/forwarding"
	"github.com/firnid/firn/server/service"
	"github.com/firnid/firn/server/stores"
	"github.com/firnid/firn/server/tlsconf"
)

// defaultListen is on loopback, where neither TLS nor tokens are needed.
const defaultListen = "127.0.0.1:3476"

// A serving is what the command serve was told.
type serving struct {
	listen         []string
	listenOf       [3]string // of HTTP, gRPC and RESP alone
	tls            tlsconf.Files
	tokens         string
	maxConns       uint64
	advertise      string
	config         string
	file           atomic.Pointer[config.File] // what it says; nil without one
	from           origin                      // of values that no flag says
	said           map[string]bool             // flags that the command line or a variable says
	create         bool
	forward        bool
	memberToken    string // the file
	layout         firn.Layout
	anyLayout      bool // another is meant, which could not be read
	store          string
	node           string
	nodes          *sequencer.Range
	allowLocal     bool
	allowClock     allowClock
	maxAhead       time.Duration
	givenAhead     bool
	maxNames       uint64
	requestTimeout time.Duration
	drainDelay     time.Duration
	drainTimeout   time.Duration
	insecure       bool
	waitForStore   bool
	logging
	limiting
	traced
}

// newServing is what serve does where it is told nothing.
func newServing() *serving {
	return &serving{
		listen:         []string{defaultListen},
		maxConns:       server.DefaultMaxConns,
		layout:         firn.Default(),
		maxNames:       service.DefaultMaxNames,
		requestTimeout: service.DefaultLimit,
		drainTimeout:   15 * time.Second,
		logging:        logging{logFormat: "text"},
		limiting:       newLimiting(),
		traced:         newTraced(),
		create:         true,
		waitForStore:   true,
		forward:        true,
	}
}

func newServe(a *app) *cobra.Command {
	s := newServing()
	cmd := &cobra.Command{
		Use:   "serve [--listen ADDRESS] [--store URL] [--layout LAYOUT] [--node NODE]",
		Short: "Hand out IDs over HTTP, gRPC and the protocol of Redis",
		Long: `Serve hands out IDs to programs in every language: on one port over HTTP, gRPC and
the protocol of Redis (RESP).

  curl -s http://127.0.0.1:3476/v1/sequencers/orders/next
  curl -s 'http://127.0.0.1:3476/v1/sequencers/orders/next?count=5&format=base62'
  curl -s -H 'Accept: text/plain' http://127.0.0.1:3476/v1/sequencers/orders/next
  redis-cli -p 3476 NEXT orders 3
  grpcurl -plaintext -d '{"sequencer":"orders","count":3}' localhost:3476 firn.v1.IDs/Next

"orders" is a name of your choice: a sequencer. IDs are unique within one name and
one store.

A sequencer is created when its name is first used, with --layout and
--max-ahead; one that exists is served as it is. Any number of servers on one
store give IDs of the same names, and no two are equal, whatever clocks do and
however servers end.

A mistyped name creates a sequencer too, and its IDs may equal those of the one that
was meant: the log warns if the name is like another. --create-on-first-use=false
refuses names that do not exist; firn sequencer create makes them.

` + storeHelp + `

With --node and no --store, no store is used: the number is static, and nothing
but you keeps it apart from those of other servers. Two servers with the same one
make the same IDs when they run at the same time. One after the other is safe,
also right after a crash, as long as the clock is not set back while none runs
and --max-ahead is not made smaller. With --store, --node pins the number. It is
` + nodeUsage + `.

--listen takes HOST:PORT, or unix:PATH for a socket in the file system that only its
owner can connect to (unix:PATH?mode=0660 lets a group, too), and may be said several
times; --listen-http, --listen-grpc and --listen-resp are for one protocol
alone. With one of these there is no port for all protocols, unless --listen says it.

Without more, serve listens on loopback and in the file system only, and answers HTTP
only to localhost, 127.0.0.0/8 or [::1]. For other machines it wants to know who asks,
and that nobody listens in: --tls-cert and --tls-key, and either --tokens (see firn
token new --help) or --client-ca with --require-client-cert. --insecure lifts that. All
these files are read again when they change, and at SIGHUP.

SIGINT or SIGTERM ends it: requests under way finish first. A second one ends it
at once, without giving node IDs back. Behind a load
balancer, set --drain-delay to longer than it takes to notice that /readyz says
503, such as 10s: until then the server goes on.`,
		Example: `  firn serve
  firn serve --layout hazelcast
  firn serve --store dir:/srv/firn --nodes 0..511
  firn serve --node env:NODE_ID --log-format json
  firn serve --listen 127.0.0.1:0`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wrong, err := s.load(a, cmd.Flags())
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), a, wrong)
		},
	}
	cmd.Flags().StringVar(&s.config, "config", "", "`FILE` of the configuration, see firn config --help (default $"+configEnv+")")
	s.flags(cmd)
	return cmd
}

// flags are those that a file of configuration can have too.
func (s *serving) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&s.listen, "listen", s.listen, "`ADDRESS` to listen on for all protocols; port 0 takes a free one")
	f.StringVar(&s.listenOf[0], "listen-http", "", "`ADDRESS` to listen on for HTTP alone")
	f.StringVar(&s.listenOf[1], "listen-grpc", "", "`ADDRESS` to listen on for gRPC alone")
	f.StringVar(&s.listenOf[2], "listen-resp", "", "`ADDRESS` to listen on for RESP alone")
	f.StringVar(&s.tls.Cert, "tls-cert", "", "`FILE` with the server's certificate, in PEM")
	f.StringVar(&s.tls.Key, "tls-key", "", "`FILE` with its key")
	f.StringVar(&s.tls.ClientCA, "client-ca", "", "`FILE` with the authorities of clients' certificates")
	f.BoolVar(&s.tls.Require, "require-client-cert", false, "refuse clients without a certificate of --client-ca")
	f.StringVar(&s.tls.MemberCA, "member-ca", "", "`FILE` with the authorities of other servers of the store (default those of --client-ca)")
	f.StringVar(&s.tokens, "tokens", "", "`FILE` of tokens, and of names in certificates, that may do what")
	f.StringVar(&s.advertise, "advertise", "", "`ADDRESS` at which other servers reach this one, and no other (default the host's name and port)")
	numberVar(cmd, &s.maxConns, "max-connections", "", "N", "how many connections there can be at an address")
	layoutVar(cmd, &s.layout, "layout of the IDs")
	storeVar(cmd, &s.store)
	f.Var(&value[string]{&s.node, notEmpty, nil, "NODE"}, "node", "static node ID, with --store a pinned one: 9, datacenter=9,worker=7, env:NAME, hostname or if:NAME")
	nodesVar(cmd, &s.nodes)
	f.BoolVar(&s.allowLocal, "allow-local-mac", false, "let --node if:NAME take an address that software made up")
	clockVars(cmd, &s.allowClock)
	// Its zero value is no default: 0s is another setting.
	f.Var(&value[time.Duration]{&s.maxAhead, time.ParseDuration, nil, "DURATION"}, "max-ahead", "how far IDs may run ahead of the clock in a burst (default the layout's; 5ms with a static node)")
	numberVar(cmd, &s.maxNames, "max-sequencers", "", "N", "how many names there can be")
	f.DurationVar(&s.requestTimeout, "request-timeout", s.requestTimeout, "how long a request may wait for its IDs")
	f.DurationVar(&s.drainDelay, "drain-delay", s.drainDelay, "how long to serve after SIGINT or SIGTERM, while /readyz says 503 and clients are sent away")
	f.DurationVar(&s.drainTimeout, "drain-timeout", s.drainTimeout, "how long requests may take to finish when the server stops")
	s.limiting.flags(cmd)
	s.logging.flags(cmd)
	s.traced.flags(cmd)
	f.BoolVar(&s.insecure, "insecure", false, "listen on any address and answer to any host name, also without TLS or tokens")
	f.BoolVar(&s.forward, "forward", s.forward, "ask another server of the store where this one has no node ID")
	f.StringVar(&s.memberToken, "member-token", "", "`FILE` with the token that other servers of the store let this one in with")
	f.BoolVar(&s.waitForStore, "wait-for-store", s.waitForStore, "start while the store is unreachable, unready, and keep trying; otherwise exit")
	f.BoolVar(&s.create, "create-on-first-use", s.create, "create a sequencer on the first use of its name; false refuses unknown names")
}

// run listens and serves until ctx is done. What is wrong with values is said
// at once, with what was found wrong before.
func (s *serving) run(ctx context.Context, a *app, wrong faults) error {
	endpoints, more := s.check(true)
	wrong = append(wrong, more...)
	log := s.logger(a)
	for _, v := range unknownVars(a.environment(), s.node) {
		text := []any{"name", v.name}
		if v.near != "" {
			text = append(text, "hint", "did you mean "+v.near+"?")
		}
		log.Warn("a variable that is no key is not used", text...)
	}
	guard, more := s.readGuard(func(text string) { log.Warn(text) })
	if err := append(wrong, more...).error(s.from); err != nil {
		return err
	}
	// A server without files to read stays, too: SIGHUP would end the program.
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	tracer, endTraces, err := s.startTraces(ctx, a, log)
	if err != nil {
		return err
	}
	defer endTraces()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c, err := s.server(ctx, a, log, guard, fail)
	if err != nil {
		return err
	}
	if c.Store != nil {
		defer c.Store.Close()
	}
	c.Tracer = tracer
	srv, err := server.New(c)
	if err != nil {
		return misuse("", "%w", err)
	}
	for _, p := range endpoints {
		if err := p.open(); err != nil {
			for _, q := range endpoints {
				q.close()
			}
			_ = srv.Shutdown(context.WithoutCancel(ctx))
			return err
		}
	}
	// After the first signal, another one ends the program at once.
	reset := context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	defer reset()
	if err := s.serve(ctx, a, log, srv, guard.tls != nil, endpoints, hup); err != nil {
		return err
	}
	var refused *exitError // of a store that was waited for
	if errors.As(context.Cause(ctx), &refused) {
		return refused
	}
	log.Info("stopped")
	return nil
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

// static is the source of IDs without a store.
func (s *serving) static(node uint64) *service.StaticConfig {
	o := &firn.Options{MaxAhead: staticAhead}
	if s.givenAhead {
		o.MaxAhead = s.maxAhead
	}
	return &service.StaticConfig{Layout: s.layout, Node: node, Options: o, MaxNames: int(s.maxNames)}
}

// usual is what a sequencer is made and used with where no template says more.
func (s *serving) usual(node uint64) sequencer.Config {
	c := sequencer.Config{Layout: s.layout, Nodes: s.nodes, AllowClockBehind: s.allowClock.behind, AllowClockAhead: s.allowClock.ahead}
	if s.node != "" {
		c.Nodes = &sequencer.Range{Lo: node, Hi: node}
	}
	if s.givenAhead {
		c.MaxAhead = &s.maxAhead
	}
	return c
}

// server is what the server is made with, of values that check has found right.
// Its Store is open, or is being waited for; fail ends the server if it turns
// out to be a wrong one.
func (s *serving) server(ctx context.Context, a *app, log *slog.Logger, guard *guard, fail func(error)) (c server.Config, err error) {
	c = server.Config{
		Advertise: s.advertise, Tokens: guard.tokens, TLS: guard.tls, AnyHost: s.insecure || s.tls.Require,
		Limit: s.requestTimeout, Limits: s.limits(), RESPIdle: s.idleOfRESP, RESPRefuseUnsafe: s.integersOfRESP == refuseUnsafe, MaxConns: int(s.maxConns),
		Version: version, Log: log,
	}
	node := uint64(0)
	if s.node != "" {
		if node, err = readNode(s.layout, s.node, s.allowLocal); err != nil {
			return c, err
		}
	}
	if s.node != "" && s.store == "" {
		log.Warn("static node: another server with the same node makes the same IDs", "node", s.node, "hint", "give each its own --node, or share a --store")
		if a.getenv(storeEnv) != "" {
			log.Warn("static node: "+storeEnv+" is not used", "hint", "add --store to pin the number in a store")
		}
		c.Static = s.static(node)
		return c, nil
	}
	c.Sequencers, c.MaxNames, c.Template = s.usual(node), int(s.maxNames), s.template
	c.Sequencers.Now = a.clock
	if s.forward {
		switch {
		case s.memberToken != "" && guard.tls == nil && !s.insecure:
			log.Warn("--member-token is not sent to servers without TLS", "hint", "give them certificates (--tls-cert, --tls-key), or --insecure where nobody can listen")
		case guard.tls != nil && !guard.tls.KnowsMembers():
			log.Warn("other servers of the store are not asked: no authority is known for their certificates", "hint", "--member-ca names the file of it; --forward=false leaves this out")
		case s.memberToken == "" && guard.tokens != nil && guard.tls == nil:
			log.Warn("other servers will not answer this one when it has no node ID", "hint", "--member-token names a file with a token for it; --forward=false leaves it out")
		}
		c.Forward = &forwarding.ForwarderConfig{PlainToken: s.insecure}
		if guard.memberToken != nil {
			c.Forward.Token = guard.memberToken.token
		}
	}
	open := func(ctx context.Context) (grant.Store, error) {
		return a.openStore(ctx, s.store, false, newsOf(log))
	}
	if s.waitForStore {
		c.Store, err = stores.OpenOrWait(ctx, open, log, fail)
	} else {
		c.Store, err = open(ctx)
	}
	var e *exitError
	if errors.As(err, &e) && s.store == "" && slices.Equal(s.listen, []string{defaultListen}) && a.container() != "" {
		e.hint += "; and let other machines in: --listen :3476 (FIRN_LISTEN) with TLS and tokens, or with --insecure on a private network"
	}
	return c, err
}

// check finds what is wrong with what was said, as far as that can be known
// without a store: all but the files of readGuard. Where lookUp is not set,
// what is of the machine that serve runs on is left out: variables, its name
// and its interfaces.
func (s *serving) check(lookUp bool) (endpoints []*endpoint, all faults) {
	endpoints, all = s.endpoints()
	all = append(all, s.checkValues()...)
	all = append(all, s.checkNodes(lookUp)...)
	if s.store != "" {
		err := checkStoreURL(s.store)
		if err == nil && s.from["store"].where != "" {
			err = checkWholePath(s.store)
		}
		if err != nil {
			all.exit("store", "", err)
		}
	}
	return endpoints, all
}

// checkValues finds what is wrong with values that need nothing else.
func (s *serving) checkValues() (all faults) {
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
			all.add(d.flag, d.value.String(), "", "the least is %v", d.least)
		}
	}
	if s.maxConns < 1 || s.maxConns > 1_000_000 {
		all.add("max-connections", strconv.FormatUint(s.maxConns, 10), "", "it is a number from 1 to 1000000")
	}
	if s.maxNames < 1 || s.maxNames > 1<<30 {
		all.add("max-sequencers", strconv.FormatUint(s.maxNames, 10), "", "it is a number from 1 to %d", 1<<30)
	}
	if s.layout.ReadOnly() {
		all.add("layout", s.layout.String(), "firn layout lists what can be made", "%w", errReadOnly(s.layout))
	} else if err := config.CheckTime(s.layout, time.Now()); err != nil {
		all.add("layout", s.layout.String(), "", "%w", err)
	}
	if s.advertise != "" && !isHostPort(s.advertise) {
		all.add("advertise", s.advertise, "", "it is HOST:PORT, such as ids-1.example:3476, where other servers reach this one")
	}
	return append(append(all, s.checkLimits()...), s.checkTraces()...)
}

// isHostPort reports whether a program can connect to an address, should there
// be a server.
func isHostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || strings.ContainsRune("/@?#\\\"'", r) }) {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// checkNodes finds what does not go with the layouts of the server and of its
// templates: node numbers, and max-ahead.
func (s *serving) checkNodes(lookUp bool) (all faults) {
	template := config.Template{Layout: s.layout}
	if s.anyLayout || s.layout.ReadOnly() { // which was said
		template.Layout = firn.Layout{}
		if s.givenAhead && s.maxAhead >= 0 {
			template.MaxAhead = &s.maxAhead
		}
	} else {
		usual, wrong := s.checkUsual(lookUp)
		all = wrong
		template.MaxAhead = usual.MaxAhead
		if r := usual.Nodes; r != nil {
			template.Lo, template.Hi, template.HasNodes = r.Lo, r.Hi, true
		}
	}
	if f := s.file.Load(); f != nil {
		all.file(f.Check(template, time.Now()))
	}
	return all
}

// checkUsual finds what does not go with the server's own layout, and returns
// what goes.
func (s *serving) checkUsual(lookUp bool) (usual sequencer.Config, all faults) {
	node, known := uint64(0), false
	kind, name, _ := strings.Cut(s.node, ":")
	ofMachine := kind == "hostname" || kind == "if" || kind == "env" && name != ""
	if s.node != "" && (lookUp || !ofMachine) {
		var err error
		node, err = readNode(s.layout, s.node, s.allowLocal)
		if known = err == nil; !known {
			all.exit("node", s.node, err)
		}
	}
	usual = s.usual(node)
	switch r := s.nodes; {
	case s.node != "" && r != nil:
		all.add("nodes", "", "", "either --node or --nodes, not both")
		usual.Nodes = nil
	case s.node != "" && !known:
		usual.Nodes = nil
	case r != nil && r.Hi > s.layout.MaxNode():
		all.add("nodes", fmt.Sprintf("%d..%d", r.Lo, r.Hi), "", "layout %s has nodes 0 to %d", s.layout, s.layout.MaxNode())
		usual.Nodes = nil
	}
	if s.maxAhead < 0 { // which checkValues says
		usual.MaxAhead = nil
		return usual, all
	}
	var err error
	if s.node != "" && s.store == "" {
		_, err = service.NewStatic(*s.static(node))
	} else {
		_, err = grant.DefaultConfig(nil, s.layout, usual.MaxAhead, nil)
	}
	switch {
	case err == nil:
	case s.givenAhead:
		all.exit("max-ahead", s.maxAhead.String(), err)
		usual.MaxAhead = nil
	default:
		all.exit("layout", s.layout.String(), err)
	}
	return usual, all
}

// serve answers requests until ctx is done, and then those that are under way.
// A signal of hup reloads files.
func (s *serving) serve(ctx context.Context, a *app, log *slog.Logger, srv *server.Server, secure bool, endpoints []*endpoint, hup <-chan os.Signal) error {
	listeners := make([]server.Listener, len(endpoints))
	for i, p := range endpoints {
		listeners[i] = server.Listener{Listener: p.listener, Only: p.only}
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listeners...) }()
	s.greet(a, log, secure, endpoints)
	manager := a.supervisor(log)
	manager.ready(endpoints[0].url(scheme(secure)))
	alive, dead := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { manager.watch(alive) })
	defer watching.Wait()
	defer dead()

	over := make(chan struct{})
	var reloading sync.WaitGroup
	reloading.Go(func() { s.reloadAt(hup, over, log, srv) })
	defer reloading.Wait()
	defer close(over)

	ended := false
	var failure error
	select {
	case failure = <-served:
		ended = true
	case <-ctx.Done():
	}
	manager.stopping(s.drainDelay + s.drainTimeout + closingTime)
	srv.Drain()
	var again []any // the first line after a signal says what a second one does
	if ctx.Err() != nil {
		again = []any{"hint", "a second signal ends it at once, without giving node IDs back"}
	}
	if s.drainDelay > 0 && !ended {
		// A load balancer must be able to ask /readyz: so the port stays open.
		log.Info("draining: /readyz says so, and requests are still taken", append([]any{"delay", s.drainDelay.String()}, again...)...)
		again = nil
		select {
		case failure = <-served:
			ended = true
		case <-time.After(s.drainDelay):
		}
	}
	log.Info("stopping: requests under way may finish", append([]any{"limit", s.drainTimeout.String()}, again...)...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drainTimeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	if !ended {
		failure = <-served
	}
	return s.result(failure, err)
}

// hupEvery is the time between two reloads that signals ask for: each can be a
// line of the log. Of signals that come sooner, one is heeded later.
const hupEvery = time.Second

// reloadAt reloads files at signals of hup, also while the server drains.
func (s *serving) reloadAt(hup <-chan os.Signal, over <-chan struct{}, log *slog.Logger, srv *server.Server) {
	for {
		select {
		case <-hup:
			s.reloadAll(log)
			srv.Reload()
		case <-over:
			return
		}
		select {
		case <-time.After(hupEvery):
		case <-over:
			return
		}
	}
}

// result is the error of a server that serves no more, and of its end.
func (s *serving) result(failure, end error) error {
	switch {
	case failure != nil:
		return failed("", "serve: %w", failure)
	case errors.Is(end, context.DeadlineExceeded):
		return failed("--drain-timeout gives them more time", "requests were cut off that had not finished after %v", s.drainTimeout)
	case end != nil:
		return failed("", "stop: %w", end)
	}
	return nil
}

// closingTime is how long giving node IDs back may take when requests have
// finished.
const closingTime = 5 * time.Second

// scheme is that of URLs of the server.
func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}

// greet says where the server listens.
func (s *serving) greet(a *app, log *slog.Logger, secure bool, endpoints []*endpoint) {
	if s.insecure {
		log.Warn("insecure: whoever reaches this address can take IDs, and sees those of others")
	}
	for _, p := range endpoints {
		source, name := s.numbers(a)
		log.Info("serving", "url", p.url(scheme(secure)), "layout", s.layout.String(), source, name)
	}
	url := endpoints[0].url(scheme(secure))
	if !a.lookOf(a.stderr).terminal || !strings.HasPrefix(url, "http") {
		return
	}
	host, port, _ := net.SplitHostPort(endpoints[0].listener.Addr().String())
	redis := "redis-cli -p " + port
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() && !ip.IsUnspecified() {
		redis = "redis-cli -h " + host + " -p " + port
	}
	fmt.Fprintf(a.stderr, "\n  Firn serves %s. Try this in another terminal:\n\n  curl -s %s/v1/sequencers/orders/next\n  %s NEXT orders 3\n\n", url, url, redis)
}

// numbers says where node IDs come from: from a static node, or from a store.
func (s *serving) numbers(a *app) (source, name string) {
	switch {
	case s.store == "" && s.node != "":
		return "node", s.node
	case s.store != "":
		return "store", a.storeName(s.store)
	}
	return "store", a.storeName(a.getenv(storeEnv))
}

// storeName is the store that a URL names, for people.
func (a *app) storeName(url string) string {
	path := ""
	switch url {
	case "":
		path, _ = a.ownPath()
	case machineStore:
		path, _ = a.machinePath()
	default:
		return stores.Redact(url)
	}
	return "dir:" + path
}

// newsOf is what serve logs of the store that it opens.
func newsOf(log *slog.Logger) storeNews {
	return storeNews{
		warn:    func(text string) { log.Warn("store: " + text) },
		created: func(path string) { log.Info("store created", "path", path) },
		another: func(path, machine string) {
			log.Warn("this user's own store: its IDs can equal those of the machine's store", "path", path, "machine", machine, "hint", "--store "+machineStore)
		},
	}
}
