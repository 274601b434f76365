package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/operate/members"
)

// members compares this program with the servers of the store.
func (r *report) members(ctx context.Context) {
	now := r.config.Now()
	all, err := members.List(ctx, r.config.Store, now)
	switch {
	case err != nil:
		r.add("members", Unknown, "", "cannot list the servers of the store: %v", err)
		return
	case len(all) == 0:
		r.add("members", OK, "", "no server is listed in the store: none runs, or none can write there")
		return
	}
	texts, versions := make([]string, len(all)), []string{r.config.Version}
	for i, m := range all {
		name := cmp.Or(m.Address, m.Host)
		texts[i] = fmt.Sprintf("%s (%s)", name, cmp.Or(m.Version, "unknown version"))
		versions = append(versions, m.Version)
		for _, l := range m.Lacks {
			r.add("members", Fix, "its log has the cause; see docs/runbooks.md",
				"server %s gives no IDs of %s: %s", name, l.Sequencer, l.Problem)
		}
		// It wrote this in the past, by its own clock.
		if lead := m.Seen.Sub(now); lead > maxOffset {
			r.add("clock", Fix, ntpHint+", on both machines",
				"the clock of server %s is at least %v ahead of this one", name, lead.Round(time.Millisecond))
		}
	}
	slices.Sort(texts)
	text := "servers of the store: " + strings.Join(texts, ", ")
	for _, v := range versions {
		if slices.ContainsFunc(versions, func(w string) bool { return incompatible(v, w) }) {
			r.add("members", Fix, "versions on one store may be only one minor version apart (docs/upgrades.md)",
				"%s; this firn is %s", text, r.config.Version)
			return
		}
	}
	r.add("members", OK, "", "%s", text)
}

// incompatible reports whether two versions are known not to work together on
// one store.
func incompatible(v, w string) bool {
	var a, b struct{ major, minor int }
	if n, _ := fmt.Sscanf(v, "v%d.%d.", &a.major, &a.minor); n != 2 {
		return false
	}
	if n, _ := fmt.Sscanf(w, "v%d.%d.", &b.major, &b.minor); n != 2 {
		return false
	}
	return a.major != b.major || a.minor-b.minor > 1 || b.minor-a.minor > 1
}
