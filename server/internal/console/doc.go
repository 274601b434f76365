// Package console is the web pages of firn serve: the sequencers of a store,
// its servers, inspecting an ID, planning a layout, and the IDs of a time
// range.
//
// Pages are HTML rendered by the server, and work without JavaScript where
// possible. With JavaScript, figures update (server-sent events) and answers
// appear as the user types (htmx). Nothing is loaded from other sites, and the
// Content-Security-Policy allows no inline script or style. docs/console.md is
// for users.
//
// A program that needs figures should not parse these pages: use the HTTP API
// of package httpapi, and /metrics.
package console
