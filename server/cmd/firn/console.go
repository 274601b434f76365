package main

import (
	"log/slog"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/console"
)

// console makes the web pages. They end with Close.
func (s *serving) console(guard *guard, b backend, log *slog.Logger) (*console.Console, error) {
	c := console.Config{
		Backend: b.service(),
		Figures: b.figures,
		Self:    s.self,
		TLS:     tlsState,
		Layout:  s.layout, Limit: s.requestTimeout, Version: version, Log: log,
	}
	if guard.tokens != nil {
		c.Tokens = func() *auth.Set { return guard.tokens.Set() }
	}
	return console.New(c)
}
