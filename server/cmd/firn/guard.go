package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/tlsconf"
)

// A guard is what the files of tokens and certificates say.
type guard struct {
	tokens      *auth.File      // nil if everyone may do everything
	tls         *tlsconf.Loader // nil without TLS
	memberToken *tokenFile      // that other servers let this one in with; nil for none
}

// readGuard reads the files of tokens and certificates, and finds what is wrong
// with them.
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
			all = append(all, fault{flag: flag, err: err, code: exitFailed, hint: "--tls-cert, --tls-key, --client-ca and --member-ca name files in PEM"})
		}
	}
	if s.tokens != "" {
		if g.tokens, err = auth.Open(s.tokens, warn); err != nil {
			all = append(all, fault{flag: "tokens", err: err, code: exitFailed, hint: "firn token new makes an entry; firn token --help has the form of the file"})
		}
	}
	if g.memberToken, err = openTokenFile(s.memberToken, warn); err != nil {
		all = append(all, fault{flag: "member-token", err: err, code: exitFailed, hint: "it is a file with one token, such as firn token new prints"})
	}
	return g, all
}

// A tokenFile has the token that other servers let this one in with. Its
// methods are safe for use by many goroutines at once.
type tokenFile struct {
	path string
	warn func(string)
	text atomic.Pointer[string]

	mu    sync.Mutex // guards what follows; held by the call that reads the file again
	read  time.Time
	wrong bool // and that was logged
}

// openTokenFile reads a file, or returns nil if there is none to read.
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
	data, err := os.ReadFile(f.path)
	text := strings.TrimSpace(string(data))
	if err == nil && text == "" {
		err = fmt.Errorf("%s: the file is empty", f.path)
	}
	return text, err
}

// tokenEvery is how often the file is read again, at most.
const tokenEvery = 5 * time.Second

// token returns the token, which is at most tokenEvery old. If the file cannot
// be read it is the previous one; and so it is for the other calls while one
// reads.
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

// reloadAll reloads the configuration, and logs what came of it.
func (s *serving) reloadAll(log *slog.Logger) {
	switch changed, restart, err := s.reload(); {
	case err != nil:
		log.Error("the configuration is wrong: that of before goes on", "error", err)
	case changed && len(restart) > 0:
		log.Warn("the configuration was read: templates and log.level count now, and other keys at the next start", "keys", strings.Join(restart, " "))
	case changed:
		log.Info("the configuration was read: templates count for sequencers that are not in use yet, and log.level counts now")
	}
}
