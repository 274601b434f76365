package main

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/readfile"
	"github.com/firnid/firn/server/tlsconf"
)

// A guard is the contents of the token and certificate files.
type guard struct {
	tokens      *auth.File      // nil if everyone may do everything
	tls         *tlsconf.Loader // nil without TLS
	memberToken *tokenFile      // this server's token for other servers; nil for none
}

// readGuard reads the token and certificate files, and returns their faults.
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
			case s.tls.MemberCA != "":
				flag = "member-ca"
			default:
				flag = "require-client-cert"
			}
			all = append(all, fault{flag: flag, err: err, code: exitFailed, hint: "--tls-cert, --tls-key, --client-ca and --member-ca must be PEM files"})
		}
	}
	if s.tokens != "" {
		if g.tokens, err = auth.Open(s.tokens, warn); err != nil {
			all = append(all, fault{flag: "tokens", err: err, code: exitFailed, hint: "run firn token new to add an entry, and firn token --help for the format"})
		}
	}
	if g.memberToken, err = openTokenFile(s.memberToken, warn); err != nil {
		all = append(all, fault{flag: "member-token", err: err, code: exitFailed, hint: "the file must contain one token, as printed by firn token new"})
	}
	return g, all
}

// A tokenFile has this server's token for other servers. It is safe for
// concurrent use.
type tokenFile struct {
	path string
	warn func(string)
	text atomic.Pointer[string]

	mu    sync.Mutex // guards the fields below; held by the call that reads the file again
	read  time.Time
	wrong bool // and that was logged
}

// openTokenFile reads a file, or returns nil if the path is empty.
func openTokenFile(path string, warn func(string)) (*tokenFile, error) {
	if path == "" {
		return nil, nil
	}
	f := &tokenFile{path: path, warn: warn, read: time.Now()}
	text, err := f.load()
	f.text.Store(&text)
	return f, err
}

func (f *tokenFile) load() (string, error) {
	data, err := readfile.Read(f.path)
	text := strings.TrimSpace(string(data))
	if err == nil && text == "" {
		err = fmt.Errorf("%s: the file is empty", f.path)
	}
	return text, err
}

// tokenEvery is the minimum time between reads of the file.
const tokenEvery = 5 * time.Second

// token returns the token, which is up to tokenEvery old. If the file cannot be
// read, or while another call reads it, that is the previous one.
func (f *tokenFile) token() string {
	if f.mu.TryLock() {
		defer f.mu.Unlock()
		if time.Since(f.read) >= tokenEvery {
			f.read = time.Now()
			text, err := f.load()
			if err == nil {
				f.text.Store(&text)
			} else if !f.wrong {
				f.warn(fmt.Sprintf("--member-token: keeping the previous token: %v", err))
			}
			f.wrong = err != nil
		}
	}
	return *f.text.Load()
}

// reloadAll reloads the configuration and logs the result.
func (s *serving) reloadAll(log *slog.Logger) {
	switch changed, restart, err := s.reload(); {
	case err != nil:
		log.Error("invalid configuration: keeping the previous one", "error", err)
	case changed && len(restart) > 0:
		log.Warn("configuration reloaded: templates and log.level apply now, other keys after a restart", "keys", strings.Join(restart, " "))
	case changed:
		log.Info("configuration reloaded: templates apply to sequencers that are not in use yet, log.level applies now")
	}
}
