package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/forwarding"
	"github.com/firnid/firn/server/listen"
	"github.com/firnid/firn/server/tlsconf"
)

// A guard knows who may do what, and how connections are encrypted.
type guard struct {
	tokens *auth.File      // nil if nobody is known
	tls    *tlsconf.Loader // nil without TLS
	hup    chan os.Signal  // says to read files again; nil never does
	all    bool            // any certificate that was verified may generate, as there are no tokens
}

// openGuard reads the files of tokens and certificates, and finds what is wrong with them.
func (s *serving) openGuard(log *slog.Logger) (*guard, faults) {
	g, all := s.readGuard(func(text string) { log.Warn(text) })
	if len(all) > 0 {
		return nil, all
	}
	g.hup = make(chan os.Signal, 1)
	signal.Notify(g.hup, syscall.SIGHUP) // also where there is nothing to read: it would end the program
	if g.tokens != nil {
		g.reportTokens(log, "tokens were read")
	}
	return g, nil
}

// readGuard is openGuard without a word in the log, and without signals.
func (s *serving) readGuard(warn func(string)) (_ *guard, all faults) {
	g := new(guard)
	var err error
	if s.tls != (tlsconf.Files{}) {
		if g.tls, err = tlsconf.Load(s.tls, warn); err != nil {
			flag := "tls-cert"
			switch {
			case s.tls.Cert != "":
			case s.tls.Key != "":
				flag = "tls-key"
			case s.tls.ClientCA != "":
				flag = "client-ca"
			default:
				flag = "require-client-cert"
			}
			all = append(all, fault{flag: flag, err: err, code: exitFailed, hint: "--tls-cert, --tls-key and --client-ca name files in PEM"})
		}
	}
	if s.tokens != "" {
		if g.tokens, err = auth.Open(s.tokens, warn); err != nil {
			all = append(all, fault{flag: "tokens", err: err, code: exitFailed, hint: "firn token new makes an entry; firn token --help has the form of the file"})
		}
	}
	if _, err := s.readMemberToken(); err != nil {
		all = append(all, fault{flag: "member-token", err: err, code: exitFailed, hint: memberTokenHint})
	}
	g.all = g.tokens == nil && s.tls.Require
	return g, all
}

// memberTokenHint says what the file of --member-token is.
const memberTokenHint = "it is a file with one token, such as firn token new prints"

// readMemberToken is the token that other servers let this one in with, or "".
func (s *serving) readMemberToken() (string, error) {
	if s.memberToken == "" {
		return "", nil
	}
	data, err := os.ReadFile(s.memberToken)
	text := strings.TrimSpace(string(data))
	if err == nil && text == "" {
		err = fmt.Errorf("%s: the file is empty", s.memberToken)
	}
	return text, err
}

// close ends what openGuard has begun.
func (g *guard) close() { signal.Stop(g.hup) }

// knows reports whether it is known who asks.
func (g *guard) knows() bool { return g.tokens != nil || g.all }

// tlsConfig is that of listeners, or nil.
func (g *guard) tlsConfig() *tls.Config {
	if g.tls == nil {
		return nil
	}
	return g.tls.Config()
}

// reloadEvery is how often files are looked at.
const reloadEvery = 5 * time.Second

// watch reads files again that have changed, and at SIGHUP, until ctx is done. At SIGHUP
// it reloads the configuration too.
func (g *guard) watch(ctx context.Context, log *slog.Logger, reload func() (bool, []string, error)) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.hup:
			switch changed, restart, err := reload(); {
			case err != nil:
				log.Error("the configuration is wrong: that of before goes on", "error", err)
			case changed && len(restart) > 0:
				log.Warn("the configuration was read: templates and log.level count now, and other keys at the next start", "keys", strings.Join(restart, " "))
			case changed:
				log.Info("the configuration was read: templates count for sequencers that are not in use yet, and log.level counts now")
			}
		case <-tick.C:
		}
		if g.tokens != nil {
			report(log, "tokens", g.tokens.Reload, func() { g.reportTokens(log, "tokens changed: the new ones count") })
		}
		if g.tls != nil {
			report(log, "certificates", g.tls.Reload, func() { log.Info("certificates changed: the new ones count") })
		}
	}
}

// reportTokens says how many entries of the file of tokens count.
func (g *guard) reportTokens(log *slog.Logger, text string) {
	n := g.tokens.Set().Len()
	log.Info(text, "entries", n)
	if n == 0 {
		log.Warn("tokens: there is no entry, so no one may do anything", "hint", "firn token new --file makes one")
	}
}

// report says what came of reading files again; done is called where they have changed.
func report(log *slog.Logger, what string, reload func() (bool, error), done func()) {
	switch changed, err := reload(); {
	case err != nil && changed:
		log.Error(what+" changed and are wrong: those of before go on", "error", err)
	case changed:
		done()
	}
}

// tlsStateKey is that of a connection's TLS state in the context of its requests.
type tlsStateKey struct{}

// withTLSState is for http.Server, which knows the state of its own connections only.
func withTLSState(ctx context.Context, conn net.Conn) context.Context {
	if state := listen.StateOf(conn); state != nil {
		return context.WithValue(ctx, tlsStateKey{}, state)
	}
	return ctx
}

// tlsState is that of the connection of a request, or nil.
func tlsState(r *http.Request) *tls.ConnectionState {
	state, _ := r.Context().Value(tlsStateKey{}).(*tls.ConnectionState)
	return state
}

// authorizer knows who may do what; nil if everybody may do everything.
func (g *guard) authorizer() auth.Authorizer {
	if g.tokens == nil {
		return nil
	}
	return g.tokens
}

// forwarderConfig is how this server asks others of its store.
func (s *serving) forwarderConfig(certificates *tlsconf.Loader) (c forwarding.ForwarderConfig, err error) {
	token, err := s.readMemberToken()
	if err != nil {
		return c, failed(memberTokenHint, "--member-token: %w", err)
	}
	if token != "" {
		c.Token = func() string { return token }
		c.PlainToken = s.insecure
	}
	if certificates != nil {
		c.TLS = certificates.Client()
	}
	return c, nil
}
