package auth

import (
	"slices"
	"testing"
)

// TestRoles: each role may do what is listed here, and nothing else.
func TestRoles(t *testing.T) {
	always := []Action{Connect, Inspect}
	may := map[Role][]Action{
		Generate: {Take, Create},
		Read:     {See, SeeAll},
		Admin:    {Take, Create, See, SeeAll, Change},
		"":       nil,
		"other":  nil,
	}
	for _, r := range roles {
		if may[r] == nil {
			t.Errorf("role %s: this test does not list what it may do", r)
		}
	}
	// A principal of some sequencers does not see what concerns all of them.
	for patterns, want := range map[string]bool{"orders": false, "o*": false, "*": true} {
		if p := (&Principal{Role: Read, sequencers: []string{"orders", patterns}}); p.May(SeeAll, "") != want {
			t.Errorf("read of %q sees all: %t, want %t", p.sequencers, !want, want)
		}
	}
	for r, list := range may {
		for do := Nothing; do <= Change+1; do++ { // and an action that May does not know
			want := slices.Contains(always, do) || slices.Contains(list, do)
			p := &Principal{Role: r}
			if r.May(do) != want || p.May(do, "orders") != want {
				t.Errorf("role %q, action %d: %t, and of orders %t, want %t", r, do, r.May(do), p.May(do, "orders"), want)
			}
		}
	}
}
