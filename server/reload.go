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
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.Reload()
		}
	}
}

// Reload reads the token and certificate files again if they have changed, as
// the Server also does every 5 seconds. It logs errors in them and keeps the
// previous versions.
func (s *Server) Reload() {
	if s.c.Tokens != nil {
		s.reload("tokens", s.c.Tokens.Reload, func() { s.logTokens("tokens reloaded") })
	}
	if s.c.TLS != nil {
		s.reload("certificates", s.c.TLS.Reload, func() { s.c.Log.Info("certificates reloaded") })
	}
}

// reload logs the result of reading files again; changed is called if they are
// new.
func (s *Server) reload(what string, read func() (bool, error), changed func()) {
	switch is, err := read(); {
	case err != nil && is:
		s.c.Log.Error("invalid "+what+": keeping the previous ones", "error", err)
	case is:
		changed()
	}
}

// logTokens logs how many tokens there are, or warns that there are none.
func (s *Server) logTokens(text string) {
	n := s.c.Tokens.Set().Len()
	s.c.Log.Info(text, "entries", n)
	if n == 0 {
		s.c.Log.Warn("the token file is empty: no client may do anything", "hint", "create a token: firn token new --file")
	}
}
