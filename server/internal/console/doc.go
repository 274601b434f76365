// Package console is the web pages of firn serve: the sequencers of a store and
// what is wrong with them, its servers, and inspecting an ID.
//
// Pages are HTML rendered by the server, and work without JavaScript. With it,
// pages with figures request themselves regularly. Nothing is loaded from other
// sites, and the Content-Security-Policy allows no inline script or style. They
// are written in *.templ files, from which scripts/templ.sh generates Go code.
// docs/console.md is for users.
//
// A program that needs figures should not parse these pages: use the HTTP API
// of package httpapi, and /metrics.
package console
