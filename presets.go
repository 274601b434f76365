package firn

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
)

// A preset is a named layout: its bits, and what is known of the format beyond
// them.
type preset struct {
	name     string
	about    string
	bits     func(args) (string, error) // in the grammar of ParseLayout
	keys     []presetKey                // besides epoch and even, which all have
	unit     time.Duration              // zero: 1 ms
	epoch    int64                      // Unix milliseconds
	size     uint8                      // zero: as many as the bits need
	maxAhead time.Duration              // zero: 1 s
	even     uint8                      // see ParseLayout; less if the sequence is short

	nodeParts  []namedBits      // the format's own names for the parts of its node ID
	constNames map[uint8]string // position in the ID → meaning of the constant there
	format     Format           // how the format writes its IDs; zero: as ID or ID128 does
}

// A presetKey is a setting of a preset. show returns its text for a layout.
type presetKey struct {
	PresetKey
	show func(*Layout) string
}

// namedBits is a named part of a node ID.
type namedBits struct {
	name  string
	width uint8
}

// args are the settings of a layout text.
type args map[string]string

// number parses the setting key, which must lie in lo..hi.
func (a args) number(key string, lo, hi uint64) (uint64, error) {
	n, err := strconv.ParseUint(a[key], 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, fmt.Errorf("%s is %s, not a number from %d to %d", key, quoteShort(a[key]), lo, hi)
	}
	return n, nil
}

// fixedBits returns the bits of a preset that cannot be configured.
func fixedBits(bits string) func(args) (string, error) {
	return func(args) (string, error) { return bits, nil }
}

// firnEpoch is 2026-01-01T00:00:00Z.
const firnEpoch = 1767225600000

// presets is the table of all named layouts. Widths and epochs come from the
// documents and the code of the formats; the vectors in testdata/vectors were
// made by the real systems.
var presets = [...]preset{
	{
		name: "default", about: "Firn's own: 41 bits of time since 2026, 10 of node, 12 of sequence",
		epoch: firnEpoch, even: 4,
		bits: nodeAndSeq("time:%[1]d.node:%[2]d.seq:%[3]d"),
		keys: []presetKey{keyNodeBits("10"), keySeqBits("12")},
	},
	{
		name: "hazelcast", about: "Hazelcast's Flake ID generator: time, sequence, and the node lowest",
		epoch: 1514764800000, maxAhead: 15 * time.Second,
		bits: nodeAndSeq("time:%[1]d.seq:%[3]d.node:%[2]d"),
		keys: []presetKey{keyNodeBits("16"), keySeqBits("6")},
	},
	{
		// All 64 bits are used, so IDs pass 2^63 after 34.8 years.
		name: "snowcast", about: "snowcast on Hazelcast: the node bits follow from the number of nodes",
		epoch: 1388534400000, // 2014-01-01, the epoch of its own example
		bits: func(a args) (string, error) {
			nodes, err := a.number("nodes", 128, 8192)
			width := uint8(7)
			for 1<<width < nodes {
				width++
			}
			return fmt.Sprintf("time:41.node:%d.seq:%d", width, 23-width), err
		},
		keys: []presetKey{{
			PresetKey: PresetKey{"nodes", "8192", "the maximum number of nodes, 128..8192, rounded up to a power of two"},
			show:      func(l *Layout) string { return strconv.FormatUint(1<<l.nodeBits, 10) },
		}},
	},
	{
		name: "boundary", about: "Boundary's flake: 128 bits with a MAC address as node",
		bits: fixedBits("time:64.node:48.seq:16"),
	},
	{
		name: "flake-idgen", about: "flake-idgen for Node.js: the node is a datacenter and a worker",
		bits:      fixedBits("time:42.node:10.seq:12"),
		nodeParts: []namedBits{{"datacenter", 5}, {"worker", 5}},
	},
	{
		// The generator ID got three more bits at the top after the mode bit
		// had been placed, so the node comes in two pieces.
		name: "lable", about: "LableOrg's unique IDs: spread over the key space, or sequential in time",
		bits: func(a args) (string, error) {
			cluster, err := a.number("cluster", 0, 15)
			switch bits := ".seq:6.node:3.const:1=%d.node:8.const:4=%d"; a["mode"] {
			case "spread":
				return fmt.Sprintf("time~:42"+bits, 0, cluster), err
			case "time-sequential":
				return fmt.Sprintf("time:42"+bits, 1, cluster), err
			}
			return "", fmt.Errorf("mode is %s, not spread or time-sequential", quoteShort(a["mode"]))
		},
		keys: []presetKey{{
			PresetKey: PresetKey{"mode", "spread", "spread reverses the 42 time bits, time-sequential keeps their order"},
			show: func(l *Layout) string {
				if l.consts.lo>>12&1 == 1 {
					return "time-sequential"
				}
				return "spread"
			},
		}, {
			PresetKey: PresetKey{"cluster", "0", "the cluster, 0..15"},
			show:      func(l *Layout) string { return strconv.FormatUint(l.consts.lo&15, 10) },
		}},
		constNames: map[uint8]string{12: "the mode", 0: "the cluster"},
	},
	{
		name: "twitter", about: "Twitter's snowflake of 2010, and X today",
		epoch: 1288834974657, bits: fixedBits("time:41.node:10.seq:12"),
		nodeParts: []namedBits{{"datacenter", 5}, {"worker", 5}},
	},
	{
		name: "discord", about: "Discord's snowflakes: the node is a worker and a process",
		epoch: 1420070400000, bits: fixedBits("time:42.node:10.seq:12"),
		nodeParts: []namedBits{{"worker", 5}, {"process", 5}},
	},
	{
		name: "instagram", about: "Instagram's IDs from PostgreSQL: the node is a logical shard",
		epoch: 1314220021721, bits: fixedBits("time:41.node:13.seq:10"),
		nodeParts: []namedBits{{"shard", 13}},
	},
	{
		name: "sonyflake", about: "Sony's sonyflake: ticks of 10 ms",
		epoch: 1409529600000, unit: 10 * time.Millisecond, bits: fixedBits("time:39.seq:8.node:16"),
		nodeParts: []namedBits{{"machine", 16}},
	},
	{
		// The 16 bits of a row are a hash of the table name plus a counter.
		name: "mastodon", about: "Mastodon's IDs: milliseconds and 16 bits of sequence, no node",
		bits: fixedBits("time:48.seq:16"),
	},
	{
		name: "js53", about: "exact in a JavaScript number: 53 bits",
		epoch: firnEpoch, bits: fixedBits("time:41.node:5.seq:7"),
	},
	{
		// RFC 9562, section 5.7; the counter is its method 1 (6.2).
		name: "uuidv7", about: "a standard UUIDv7 whose random part begins with sequence and node",
		bits:       fixedBits("time:48.const:4=7.seq:12.const:2=2.node:16.rand:46"),
		constNames: map[uint8]string{76: "the version", 62: "the variant"},
		format:     UUID,
	},
	{
		name: "ulid", about: "a standard ULID whose random part begins with sequence and node",
		bits: fixedBits("time:48.seq:12.node:16.rand:52"), format: Base32,
	},
	{
		name: "xid", about: "rs/xid, read only: seconds, machine and process as node, a counter",
		unit: time.Second, size: 96, bits: fixedBits("time:32.node:40.seq:24"),
		nodeParts: []namedBits{{"machine", 24}, {"process", 16}},
	},
	{
		name: "objectid", about: "MongoDB's ObjectID, read only: seconds, a random number per process, a counter",
		unit: time.Second, size: 96, bits: fixedBits("time:32.node:40.seq:24"),
		nodeParts: []namedBits{{"process", 40}}, format: Hex,
	},
	{
		name: "ksuid", about: "Segment's KSUID, read only: seconds and 128 random bits",
		unit: time.Second, size: 160, epoch: 1400000000000, bits: fixedBits("time:32.rand:128"),
	},
}

func keyNodeBits(byDefault string) presetKey {
	return presetKey{
		PresetKey: PresetKey{"node-bits", byDefault, "width of the node ID; the time gets the rest of 63 bits"},
		show:      func(l *Layout) string { return strconv.Itoa(int(l.nodeBits)) },
	}
}

func keySeqBits(byDefault string) presetKey {
	return presetKey{
		PresetKey: PresetKey{"seq-bits", byDefault, "width of the sequence"},
		show:      func(l *Layout) string { return strconv.Itoa(int(l.seqBits)) },
	}
}

// nodeAndSeq returns the bits of a preset with the keys node-bits and seq-bits,
// which share 63 bits with the time.
func nodeAndSeq(bits string) func(args) (string, error) {
	return func(a args) (string, error) {
		node, err := a.number("node-bits", 0, 62)
		if err != nil {
			return "", err
		}
		seq, err := a.number("seq-bits", 0, 62-node)
		return fmt.Sprintf(bits, 63-node-seq, node, seq), err
	}
}

// noPreset is the preset of layouts that are defined by their bits. It has no
// name.
var noPreset = preset{
	bits: func(a args) (string, error) { return a["bits"], nil },
	keys: []presetKey{{PresetKey: PresetKey{Name: "bits"}}, {PresetKey: PresetKey{Name: "unit", Default: "1ms"}}},
}

// presetOf returns the preset that the layout was made from.
func (l *Layout) presetOf() *preset {
	if l.preset == 0 {
		return &noPreset
	}
	return &presets[l.preset-1]
}

// Preset returns the name that the layout's text begins with, or "" for a
// layout that is defined by its bits.
func (l Layout) Preset() string { return l.presetOf().name }

// Format returns the format in which the layout's own system writes an ID: Hex
// for ObjectIDs, for example. It is Decimal for other 64-bit IDs and UUID for
// other 128-bit IDs.
func (l Layout) Format() Format {
	if f := l.presetOf().format; f != Decimal || l.size != 128 {
		return f
	}
	return UUID
}

// A PresetInfo describes a named layout.
type PresetInfo struct {
	Name   string
	About  string      // one line
	Keys   []PresetKey // its settings besides epoch and even
	Layout Layout      // with every key at its default
}

// A PresetKey is a setting of a named layout. Its text is NAME=VALUE.
type PresetKey struct {
	Name    string
	Default string
	About   string // one line
}

// Presets returns an iterator over the named layouts, Firn's own first.
func Presets() iter.Seq[PresetInfo] {
	return func(yield func(PresetInfo) bool) {
		for _, p := range presets {
			info := PresetInfo{Name: p.name, About: p.about, Layout: MustParseLayout(p.name)}
			for _, k := range p.keys {
				info.Keys = append(info.Keys, k.PresetKey)
			}
			if !yield(info) {
				return
			}
		}
	}
}

// presetNames lists the names for an error message.
func presetNames() string {
	var names []string
	for i := range presets {
		names = append(names, presets[i].name)
	}
	return strings.Join(names, ", ")
}
