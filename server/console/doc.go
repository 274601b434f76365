// Package console is the web pages of firn serve: the sequencers of a store,
// its servers, what an ID says, planning a layout, and the IDs of a range of
// time.
//
// Pages are HTML that the server writes, and work without JavaScript where they
// can. With it they change as figures do (server-sent events) and answer while
// one types (htmx). Nothing is fetched from elsewhere, and the
// Content-Security-Policy allows no inline script or style. docs/console.md is
// for its users.
//
// A program that wants figures should not read these pages: there are the HTTP
// API of package httpapi, and /metrics.
package console
