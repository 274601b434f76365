package auth

import (
	"slices"

	"github.com/firnid/firn/server/internal/operate/config"
)

// A Role is what a client may do. Read and Generate do not include each other;
// Admin includes both.
type Role string

// The roles.
const (
	Generate Role = "generate" // take and inspect IDs; not see the fleet
	Read     Role = "read"     // see sequencers, servers and metrics, inspect IDs; not take them
	Admin    Role = "admin"    // everything
)

// roles are all roles.
var roles = [...]Role{Generate, Read, Admin}

// May reports whether the role may perform an action on some sequencer.
func (r Role) May(do Action) bool {
	switch do {
	case Connect, Inspect:
		return true
	case Take, Create:
		return r == Generate || r == Admin
	case See, SeeAll:
		return r == Read || r == Admin
	case Change:
		return r == Admin
	}
	return false
}

// May reports whether the principal may perform an action on the named
// sequencer; "" names no sequencer.
func (p *Principal) May(do Action, sequencer string) bool {
	if !p.Role.May(do) {
		return false
	}
	switch do {
	case Connect, Inspect:
		return true
	case Take, Change:
		return p.covers(sequencer)
	case Create:
		return !p.noCreate && p.covers(sequencer)
	case See:
		return sequencer == "" || p.covers(sequencer)
	case SeeAll:
		return len(p.sequencers) == 0 || slices.Contains(p.sequencers, "*")
	}
	return false
}

func (p *Principal) covers(sequencer string) bool {
	return len(p.sequencers) == 0 || slices.ContainsFunc(p.sequencers, func(pattern string) bool {
		_, ok, _ := config.Match([]string{pattern}, sequencer)
		return ok
	})
}
