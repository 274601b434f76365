package server

import (
	"context"
	"time"
)

// reloadEvery is how often the Server checks files for changes.
const reloadEvery = 5 * time.Second

// watchFiles reloads files that have changed until ctx is done.
func (s *Server) watchFiles(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	said := make(map[string]time.Time)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.logReplaced(said, time.Now()) // before the tokens change
			s.Reload()
		}
	}
}

// replacedEvery is the minimum time between warnings about a replaced token.
const replacedEvery = time.Hour

// logReplaced logs which replaced tokens are still used. said has the time of
// the last warning for each.
func (s *Server) logReplaced(said map[string]time.Time, now time.Time) {
	if s.files.tokens == nil {
		return
	}
	for _, name := range s.files.tokens.Get().Replaced() {
		if at, ok := said[name]; !ok || now.Sub(at) >= replacedEvery {
			said[name] = now
			s.config.Logger.Warn("old token still used", "entry", name, "hint",
				"give all clients the new token before you remove the old one")
		}
	}
}

// Reload reads the token and certificate files again if they have changed, as
// the Server also does every 5 seconds. It logs errors in them and keeps the
// previous versions.
func (s *Server) Reload() {
	if s.files.tokens != nil {
		s.reload("tokens", s.files.tokens.Reload, func() { s.logTokens("tokens reloaded") })
	}
	if s.files.tls != nil {
		s.reload("certificates", s.files.tls.Reload, func() { s.config.Logger.Info("certificates reloaded") })
	}
	if s.files.forward != nil {
		s.reload("tokens for other servers", s.files.forward.Reload,
			func() { s.config.Logger.Info("tokens for other servers reloaded") })
	}
}

// reload logs the result of reading files again; changed is called if they are
// new.
func (s *Server) reload(what string, read func() (bool, error), changed func()) {
	switch is, err := read(); {
	case err != nil && is:
		s.config.Logger.Error("invalid "+what+": keeping the previous ones", "error", err)
	case is:
		changed()
	}
}

// logTokens logs the number of tokens, or warns about an empty file.
func (s *Server) logTokens(text string) {
	n := s.files.tokens.Get().Len()
	s.config.Logger.Info(text, "entries", n)
	if n == 0 {
		s.config.Logger.Warn("the token file is empty: no client may do anything", "hint",
			"create a token: firn token new --file")
	}
}
