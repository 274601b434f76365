package main

import (
	"log/slog"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/console"
	"github.com/firnid/firn/server/metrics"
	"github.com/firnid/firn/server/service"
)

// console makes the web pages. They end with Close.
func (s *serving) console(guard *guard, backend service.Backend, log *slog.Logger) (*console.Console, error) {
	c := console.Config{
		Backend: backend,
		Figures: func() []metrics.Sequencer { return figures(backend) },
		Self:    s.self,
		TLS:     tlsState,
		Layout:  s.layout, Limit: s.requestTimeout, Version: version, Log: log,
	}
	if guard.tokens != nil {
		c.Tokens = func() *auth.Set { return guard.tokens.Set() }
	}
	return console.New(c)
}
