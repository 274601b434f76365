package layouts

import (
	"fmt"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A Fact is something to know about a layout, such as when its time ends. It is
// shown as a line with a key.
type Fact struct{ Key, Text string }

// Facts returns what there is to know about a layout besides its name and its
// box.
func Facts(l firn.Layout) (all []Fact) {
	add := func(key, format string, a ...any) { all = append(all, Fact{key, fmt.Sprintf(format, a...)}) }
	var keys []firn.PresetKey
	for p := range firn.Presets() {
		if p.Name == l.Preset() {
			add("about", "%s", p.About)
			keys = p.Keys
		}
	}
	add("bits", "%d: %s", l.Bits(), Widths(l))
	add("as fields", "bits=%s,unit=%v,epoch=%s", l.Definition(), l.Unit(), epoch(l))
	add("first", "%s", inspect.Stamp(l.Epoch(), l.Unit()))
	add("last", "%s", inspect.Stamp(l.Last(), l.Unit()))
	if l.NodeBits() == 0 {
		add("nodes", "1: the layout has no node bits")
	} else {
		add("nodes", "%s (0 to %d)%s", power(l.NodeBits()), l.MaxNode(), nodeParts(l))
	}
	if l.SeqBits() == 0 {
		add("sequence", "none: a node makes one ID in %v, or as many as its random bits distinguish", l.Unit())
	} else {
		add("sequence", "%s IDs in %v, %s per second, for each node", power(l.SeqBits()), l.Unit(),
			Short(l.IDsPerSecond()))
	}
	if l.RandBits() > 0 {
		add("random", "%d bits", l.RandBits())
	}
	add("order", "%s", map[bool]string{true: "IDs sort by time", false: "IDs do not sort by time"}[l.Ordered()])
	if l.Bits() == 64 {
		add("signed", "%s", until(l, 63, "never negative as a signed number",
			"IDs may be negative as signed numbers", "negative as a signed number from %s"))
		add("JavaScript", "%s", until(l, 53, "exact in a JavaScript number (53 bits)",
			"not exact in a JavaScript number: use strings", "exact in a JavaScript number only before %s: use strings"))
	}
	switch err := l.CheckGenerator(); {
	case l.ReadOnly():
		add("made", "not by Firn, which can only read these IDs")
	case err != nil:
		add("made", "not by a generator: %v", textfmt.Plain(err))
	default:
		add("ahead", "%v: default of how far a generator may run ahead of the clock", l.DefaultMaxAhead())
	}
	add("written", "%s", l.Format())
	for _, k := range keys {
		add("key", "%s=%s  %s", k.Name, k.Default, k.About)
	}
	add("key", "epoch=%s  Unix milliseconds or RFC 3339", epoch(l))
	return all
}

// nodeParts lists the parts of the node, such as a datacenter and a worker, if
// it has any.
func nodeParts(l firn.Layout) string {
	var names []string
	for _, p := range l.NodeParts(l.MaxNode()) {
		names = append(names, fmt.Sprintf("%s 0 to %d", p.Name, p.Value))
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}
