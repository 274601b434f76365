package grant

import (
	"fmt"
	"time"

	"github.com/firnid/firn"
)

// A format is a layout, with the oracles' own knowledge of it: they do not
// decompose IDs with the code that composed them.
type format struct {
	name        string
	layout      firn.Layout
	unit, epoch int64 // in µs
	ahead       time.Duration
	node, seq   int // bits
	nodeLow     bool
	keys        []string // of the records, by node
}

// formats are the layouts: with few sequence bits, so that bursts run ahead of
// the clock, and with few nodes, so that node IDs change owners.
var formats = []*format{
	newFormat("1ms", 44, 3, 4, false, time.Millisecond, "1970-01-01T00:00:00Z", time.Second),
	newFormat("1960", 44, 3, 4, true, time.Millisecond, "1960-01-01T00:00:00Z", time.Second),
	newFormat("few", 44, 2, 4, false, time.Millisecond, "1965-03-01T00:00:00Z", time.Second),
	newFormat("digits", 44, 4, 4, true, time.Millisecond, "1970-01-01T00:00:00Z", time.Second),
	newFormat("100us", 48, 3, 2, false, 100*time.Microsecond, "1966-01-01T00:00:00Z", 100*time.Millisecond),
	newFormat("4us", 52, 3, 1, true, 4*time.Microsecond, "1966-01-01T00:00:00Z", time.Second),
	newFormat("10ms", 40, 3, 5, true, 10*time.Millisecond, "1960-01-01T00:00:00Z", 2*time.Second),
	newFormat("1s", 34, 3, 6, false, time.Second, "1960-01-01T00:00:00Z", 15*time.Second),
}

func newFormat(name string, time, node, seq int, nodeLow bool, unit time.Duration, epoch string, ahead time.Duration) *format {
	pieces := fmt.Sprintf("node:%d.seq:%d", node, seq)
	if nodeLow {
		pieces = fmt.Sprintf("seq:%d.node:%d", seq, node)
	}
	f := &format{
		name: name, node: node, seq: seq, nodeLow: nodeLow, ahead: ahead,
		layout: firn.MustParseLayout(fmt.Sprintf("bits=time:%d.%s,unit=%v,epoch=%s", time, pieces, unit, epoch)),
		unit:   unit.Microseconds(), epoch: parseTime(epoch),
	}
	for i := range f.nodes() {
		f.keys = append(f.keys, fmt.Sprintf("%s%0*d", simPrefix, len(fmt.Sprint(f.nodes()-1)), i))
	}
	return f
}

func parseTime(text string) int64 {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

func formatOf(name string) *format {
	for _, f := range formats {
		if f.name == name {
			return f
		}
	}
	panic("sim: no format " + name)
}

// formatFor returns the format of a layout.
func formatFor(l firn.Layout) *format {
	for _, f := range formats {
		if f.layout == l {
			return f
		}
	}
	panic("sim: no format of layout " + l.String())
}

// anyFormat returns a format that can represent this world's times, with enough
// node IDs unless a shortage is wanted.
func (w *world) anyFormat() *format {
	for {
		f := formats[w.Rand.IntN(len(formats))]
		if f.epoch < w.begins-24*hour && !(w.besieged && f.nodes() < processes+2) {
			return f
		}
	}
}

func (f *format) nodes() uint64 { return 1 << f.node }

// split decomposes an ID.
func (f *format) split(id firn.ID) (node, slot uint64) {
	v := uint64(id)
	tick := v >> (f.node + f.seq)
	seq, node := v&(1<<f.seq-1), v>>f.seq&(1<<f.node-1)
	if f.nodeLow {
		seq, node = v>>f.node&(1<<f.seq-1), v&(1<<f.node-1)
	}
	return node, tick<<f.seq | seq
}

// time returns when the tick of a slot begins.
func (f *format) time(slot uint64) int64 { return f.epoch + int64(slot>>f.seq)*f.unit }

// key returns the key of a node ID's record.
func (f *format) key(node uint64) string { return f.keys[node] }
