package server

import (
	"context"
	"time"
)

// reloadEvery is how often the Server looks whether files have changed.
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
			s.logReplaced(said, time.Now()) // before the tokens are others
			s.Reload()
		}
	}
}

// replacedEvery is how often the use of a replaced token is logged.
const replacedEvery = time.Hour

// logReplaced logs which tokens were used that are being replaced. said is when
// that was logged of each.
func (s *Server) logReplaced(said map[string]time.Time, now time.Time) {
	if s.c.Tokens == nil {
		return
	}
	for _, name := range s.c.Tokens.Set().Replaced() {
		if at, ok := said[name]; !ok || now.Sub(at) >= replacedEvery {
			said[name] = now
			s.c.Log.Warn("old token still used", "entry", name, "hint", "give its clients the new token before you remove the old one")
		}
	}
}

// Reload reads the files of tokens and certificates again if they have changed.
// The Server also does so every 5 seconds. What is wrong with them is logged,
// and the previous ones stay.
func (s *Server) Reload() {
	if s.c.Tokens != nil {
		s.reload("tokens", s.c.Tokens.Reload, func() { s.logTokens("tokens changed: the new ones count") })
	}
	if s.c.TLS != nil {
		s.reload("certificates", s.c.TLS.Reload, func() { s.c.Log.Info("certificates changed: the new ones count") })
	}
}

// reload logs what came of reading files again; changed is called if they are
// new.
func (s *Server) reload(what string, read func() (bool, error), changed func()) {
	switch is, err := read(); {
	case err != nil && is:
		s.c.Log.Error(what+" changed and are wrong: those of before go on", "error", err)
	case is:
		changed()
	}
}

// logTokens logs how many tokens there are.
func (s *Server) logTokens(text string) {
	n := s.c.Tokens.Set().Len()
	s.c.Log.Info(text, "entries", n)
	if n == 0 {
		s.c.Log.Warn("tokens: there is no entry, so no one may do anything", "hint", "firn token new --file makes one")
	}
}
