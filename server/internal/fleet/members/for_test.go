package members

import (
	"slices"
	"strings"
	"testing"
)

// TestFor: who sees some sequencers learns nothing of how much is made of the
// others.
func TestFor(t *testing.T) {
	m := Member{ID: "x", IDs: 100, Rate: 7, Forwarded: 3, Holds: []Held{{Sequencer: "a-1", IDs: 2}, {Sequencer: "b-1", IDs: 90}, {Sequencer: "a-2", IDs: 3}}}
	before := slices.Clone(m.Holds)
	got := m.For(func(name string) bool { return strings.HasPrefix(name, "a-") })
	if got.ID != "x" || got.IDs != 5 || got.Rate != 0 || got.Forwarded != 0 || len(got.Holds) != 2 || got.Holds[1].Sequencer != "a-2" {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(m.Holds, before) || m.IDs != 100 {
		t.Errorf("the member itself was changed: %+v", m)
	}
}
