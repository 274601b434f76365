package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/readfile"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/config"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/service/forwarding"
	"github.com/firnid/firn/veil"
)

// check validates all flags, as far as that is possible without a store and
// without the files of checkFiles. lookUp enables the checks that depend on the
// machine that serve runs on: its variables, name and interfaces.
func (s *serveCmd) check(lookUp bool) (endpoints []*endpoint, all faults) {
	endpoints, all = s.endpoints()
	all = append(all, s.checkValues()...)
	all = append(all, s.checkNodes(lookUp)...)
	err := checkStoreURL("store", s.store)
	if err == nil && s.from["store"].where != "" {
		err = checkWholePath(s.store)
	}
	if err != nil {
		all.addError("store", "", err)
	}
	return endpoints, all
}

// checkValues validates values that depend on nothing else.
func (s *serveCmd) checkValues() (all faults) {
	atLeast(&all, "request-timeout", s.RequestTimeout, time.Millisecond)
	atLeast(&all, "drain-delay", s.drainDelay, 0)
	atLeast(&all, "drain-timeout", s.drainTimeout, 0)
	within(&all, "max-connections", s.MaxConns, 1, 1_000_000, strconv.Itoa)
	within(&all, "max-sequencers", s.MaxSequencers, 1, 1<<30, strconv.Itoa)
	if s.isStatic() && !s.createOnFirstUse {
		all.add("create-on-first-use", "false", "add --store",
			"with a static node ID, no store knows which sequencers exist")
	}
	if err := config.CheckTime(s.Sequencers.Layout, time.Now()); err != nil {
		all.add("layout", s.Sequencers.Layout.String(), "", "%w", err)
	}
	if s.Advertise != "" && !members.IsAddress(s.Advertise) {
		all.add("advertise", s.Advertise, "", "it must be HOST:PORT, such as ids-1.example:3476")
	}
	for _, url := range s.ForwardTo {
		if err := forwarding.CheckURL(url); err != nil {
			all.addError("forward-to", url, err)
		} else if s.ForwardTokenFile != "" && !s.insecure && strings.HasPrefix(url, "http:") {
			all.add("forward-to", url, "use an https URL, or --insecure on a private network",
				"--forward-token would be sent without TLS")
		}
	}
	switch {
	case len(s.ForwardTo) > 0 && s.isStatic():
		all.add("forward-to", s.ForwardTo[0], "add --store",
			"with a static node ID, no store knows the windows of other servers")
	case len(s.ForwardTo) == 0 && s.ForwardTokenFile != "":
		all.add("forward-token", s.ForwardTokenFile, "", "it needs --forward-to")
	}
	if err := s.traces.Check(); err != nil {
		all.add("tracing-endpoint", "", "such as --tracing-endpoint http://localhost:4317", "%w", err)
	}
	within(&all, "max-ids-per-call", s.Limits.Count, 1, service.MaxCount, strconv.Itoa)
	within(&all, "max-body", s.Limits.Body, 1<<10, 16<<20, showSize)
	within(&all, "max-header", s.Limits.Header, 4<<10, 1<<20, showSize)
	within(&all, "read-timeout", s.Limits.Read, 100*time.Millisecond, 10*time.Minute, time.Duration.String)
	within(&all, "write-timeout", s.Limits.Write, 100*time.Millisecond, 10*time.Minute, time.Duration.String)
	within(&all, "idle-timeout", s.Limits.Idle, time.Second, 24*time.Hour, time.Duration.String)
	if s.RESPIdle != 0 {
		within(&all, "resp-idle-timeout", s.RESPIdle, time.Second, 24*time.Hour, time.Duration.String)
	}
	return all
}

// checkNodes sets the range of --node, and checks node IDs and max-ahead
// against the layouts of the server and, if these are valid, of its templates.
func (s *serveCmd) checkNodes(lookUp bool) (all faults) {
	layout, nodes := s.Sequencers.Layout, s.Sequencers.Nodes
	if s.badLayout {
		return nil // reported already
	}
	kind, name, _ := strings.Cut(s.node, ":")
	ofMachine := kind == "hostname" || kind == "if" || kind == "env" && name != ""
	switch {
	case s.node != "" && nodes != nil:
		all.add("nodes", "", "", "either --node or --nodes, not both")
	case s.node != "" && (lookUp || !ofMachine):
		node, err := readNode(layout, s.node, s.allowLocal)
		if err != nil {
			all.addError("node", s.node, err)
		}
		s.Sequencers.Nodes = &grant.NodeRange{Lo: node, Hi: node}
	case nodes != nil:
		if err := nodes.Check(layout); err != nil {
			all.addError("nodes", nodes.String(), err)
		}
	}
	var err error
	if s.isStatic() {
		_, err = service.NewStaticBackend(*s.staticConfig())
	} else {
		err = grant.DefaultConfig(nil, layout, s.Sequencers.MaxAhead).Check()
	}
	switch ahead := s.Sequencers.MaxAhead; {
	case err == nil:
	case ahead != nil:
		all.add("max-ahead", ahead.String(), "", "%s",
			strings.TrimPrefix(textfmt.Message(err), "max-ahead is "+ahead.String()+": "))
	default:
		all.addError("layout", layout.String(), err)
	}
	if f := s.file.Load(); f != nil && len(all) == 0 {
		for _, err := range f.Check(s.Sequencers, time.Now()) {
			all.addError("", "", err)
		}
	}
	return all
}

// within adds a fault if the value of a flag is not in a range.
func within[T cmp.Ordered](all *faults, flag string, v, from, to T, show func(T) string) {
	if v < from || v > to {
		all.add(flag, show(v), "", "it must be from %s to %s", show(from), show(to))
	}
}

// atLeast adds a fault if the value of a flag is too short.
func atLeast(all *faults, flag string, v, least time.Duration) {
	if v < least {
		all.add(flag, v.String(), "", "it must be at least %v", least)
	}
}

// openedFiles are files that checkFiles has read.
type openedFiles struct {
	certificates *tlsconf.Loader
	forwardToken *readfile.Content[string]
	veilKeys     veil.Keys
}

// checkFiles reads the token and certificate files, and returns their faults.
// The server warns of what is dangerous in them.
func (s *serveCmd) checkFiles() (all faults) {
	var err error
	check := func(flag, hint string) {
		if err != nil {
			all = append(all, &exitError{code: exitFailed, err: err, hint: hint, flag: flag})
		}
	}
	if !s.TLS.IsZero() {
		if err = s.TLS.Check(); err != nil {
			all.add("tls-cert", "", "give --tls-cert and --tls-key, and --client-ca with --require-client-cert",
				"%w", err)
		} else {
			s.opened.certificates, err = tlsconf.Load(s.TLS, nil)
			check("tls-cert", "--tls-cert, --tls-key and --client-ca must be PEM files")
		}
	}
	if s.TokenFile != "" {
		_, err = auth.Open(s.TokenFile, nil)
		check("tokens", "run firn token new to add an entry, and firn token --help for the format")
	}
	if s.ForwardTokenFile != "" {
		s.opened.forwardToken, err = auth.OpenToken(s.ForwardTokenFile)
		check("forward-token", "the file must contain one token, as printed by firn token new")
	}
	s.opened.veilKeys, err = form.ReadKeys(s.veilKeysPath)
	check("veil-keys", "firn convert --help explains the file")
	return all
}

// Values of --resp-integers.
const (
	allowIntegers = "allow"
	refuseUnsafe  = "refuse-unsafe"
)

var defaultLimits = service.Limits{}.WithDefaults()

// limitFlags adds the flags for limits of requests and connections.
func (s *serveCmd) limitFlags(cmd *cobra.Command) {
	f, l := cmd.Flags(), &s.Limits
	numberVar(cmd, &l.Count, "max-ids-per-call", "",
		fmt.Sprintf("maximum number of IDs per request, up to %d", service.MaxCount))
	sizeVar(cmd, &l.Body, "max-body", "maximum size of an HTTP body, a gRPC message or a RESP argument, 1KiB to 16MiB")
	sizeVar(cmd, &l.Header, "max-header", "maximum size of HTTP and gRPC headers, 4KiB to 1MiB")
	f.DurationVar(&l.Read, "read-timeout", l.Read,
		"how long a request, or a connection's first bytes, may take to arrive, 100ms to 10m")
	f.DurationVar(&l.Write, "write-timeout", l.Write, "how long a client may take to read an answer, 100ms to 10m")
	f.DurationVar(&l.Idle, "idle-timeout", l.Idle,
		"how long HTTP and gRPC connections are kept between requests, 1s to 24h")
	f.DurationVar(&s.RESPIdle, "resp-idle-timeout", s.RESPIdle,
		"how long RESP connections are kept between commands, 1s to 24h; 0 means forever")
	wordVar(cmd, &s.respIntegers, "resp-integers", "MODE",
		"INCR for IDs above 2^53, which JavaScript rounds: allow or refuse-unsafe", allowIntegers, refuseUnsafe)
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
