package grant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firnid/firn"
)

// version is the version of records, the only one that this package reads and
// writes. It does not touch records of a newer version.
const version = 3

// maxName is the maximum length of a sequencer's name, in characters.
const maxName = 128

// CheckName returns an error if name is not a valid name of a sequencer: 1 to
// 128 ASCII letters, digits and . _ - : of which the first is a letter or a
// digit.
func CheckName(name string) error {
	const rule = "a name has 1 to 128 characters (ASCII letters, digits and . _ - :) and begins with a letter or a digit"
	if name == "" || len(name) > maxName {
		return fmt.Errorf("grant: invalid sequencer name of %d bytes: %s", len(name), rule)
	}
	if i := badInPart(name); i >= 0 {
		_, size := utf8.DecodeRuneInString(name[i:])
		return fmt.Errorf("grant: invalid sequencer name %q: %q at offset %d: %s", name, name[i:i+size], i, rule)
	}
	return nil
}

// root begins the keys of all records; see docs/protocol.md.
const root = "v1/"

func configKey(name string) string   { return root + name + "/config" }
func nodesPrefix(name string) string { return root + name + "/n/" }

// nodeKey returns the key of a node ID: decimal, with as many digits as the
// layout's greatest, so that keys list in order.
func nodeKey(name string, node, most uint64) string {
	return fmt.Sprintf("%s%0*d", nodesPrefix(name), len(strconv.FormatUint(most, 10)), node)
}

// nodeOf returns the node ID of a key made by nodeKey.
func nodeOf(name, key string) (uint64, error) {
	digits, ok := strings.CutPrefix(key, nodesPrefix(name))
	if !ok {
		return 0, fmt.Errorf("%w: key %q is not that of a node ID of %s", ErrDamaged, key, name)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: key %q does not end in a node ID", ErrDamaged, key)
	}
	return n, nil
}

// ms returns t in Unix milliseconds, rounded up.
func ms(t time.Time) int64 {
	v := t.UnixMilli()
	if t.Sub(time.UnixMilli(v)) > 0 {
		v++
	}
	return v
}

// timeOf returns the time of Unix milliseconds; never is the zero time.
func timeOf(v int64) time.Time {
	if v == never {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

// A configRecord is the record of a sequencer. Times and durations are in
// milliseconds.
type configRecord struct {
	Layout        firn.Layout
	MaxAhead      int64
	Window        int64
	LongestWindow int64 // the longest Window it ever had
	State         State
	Incarnation   uint64 // 0: there is no record yet
	Floor         int64  // never if it was never fenced
	Created       int64
	Nonce         string
	configExtras
}

// configExtras are optional fields that every writer carries on. Members claim
// only Nodes, and nothing if MovedTo is set.
type configExtras struct {
	Nodes   nodeRange // zero: all node IDs of the layout
	MovedTo string    // URL of the store that has the sequencer now
	Prefix  string    // of its IDs as typed text
	LowBits int64     // Config.LowBits
}

const (
	movedToMost = 512 // bytes
)

// A nodeRange is a range of node IDs, both ends inclusive; the zero nodeRange
// is no limit.
type nodeRange struct {
	lo, hi  uint64
	limited bool
}

func (r nodeRange) String() string {
	if !r.limited {
		return "all"
	}
	return fmt.Sprintf("%d..%d", r.lo, r.hi)
}

// A configJSON is the written form of a configRecord: JSON in this order.
type configJSON struct {
	Version       int         `json:"v"`
	Layout        firn.Layout `json:"layout"`
	MaxAhead      int64       `json:"max_ahead"`
	Window        int64       `json:"window"`
	LongestWindow int64       `json:"longest_window"`
	State         string      `json:"state"`
	Incarnation   uint64      `json:"incarnation"`
	Floor         *int64      `json:"floor"` // null without a fence
	Created       int64       `json:"created"`
	Nonce         string      `json:"nonce"`
	Nodes         []uint64    `json:"nodes,omitempty"` // two numbers
	MovedTo       string      `json:"moved_to,omitempty"`
	Prefix        string      `json:"prefix,omitempty"`
	LowBits       int64       `json:"low_bits,omitempty"`
}

func newConfigRecord(c Config) configRecord {
	return configRecord{
		Layout: c.Layout, State: Attached, Incarnation: 1, Floor: never,
		MaxAhead: c.MaxAhead.Milliseconds(), Window: c.Window.Milliseconds(), LongestWindow: c.Window.Milliseconds(),
		configExtras: configExtras{Nodes: c.Nodes.record(), Prefix: c.Prefix, LowBits: int64(c.LowBits)},
	}
}

func (r configRecord) config() Config {
	var nodes *Range
	if r.Nodes.limited {
		nodes = &Range{r.Nodes.lo, r.Nodes.hi}
	}
	return Config{
		Nodes:    nodes,
		Prefix:   r.Prefix,
		LowBits:  int(r.LowBits),
		Layout:   r.Layout,
		MaxAhead: time.Duration(r.MaxAhead) * time.Millisecond,
		Window:   time.Duration(r.Window) * time.Millisecond,
	}
}

func (r configRecord) info(name string) Info {
	return Info{
		Name: name, State: r.State, Config: r.config(), Incarnation: r.Incarnation,
		Floor: timeOf(r.Floor), Created: timeOf(r.Created),
		LongestWindow: time.Duration(r.LongestWindow) * time.Millisecond, MovedTo: r.MovedTo,
	}
}

func (r configRecord) encode() []byte {
	j := configJSON{
		Version: version, Layout: r.Layout, MaxAhead: r.MaxAhead, Window: r.Window, LongestWindow: r.LongestWindow, State: r.State.String(),
		Incarnation: r.Incarnation, Created: r.Created, Nonce: r.Nonce, MovedTo: r.MovedTo, Prefix: r.Prefix, LowBits: r.LowBits,
	}
	if r.Floor != never {
		j.Floor = &r.Floor
	}
	if r.Nodes.limited {
		j.Nodes = []uint64{r.Nodes.lo, r.Nodes.hi}
	}
	return encode(j)
}

// decodeConfig parses the record of a sequencer.
func decodeConfig(key string, value []byte) (configRecord, error) {
	var j configJSON
	err := decode(key, value, &j, &j.Version)
	r := configRecord{
		Layout: j.Layout, MaxAhead: j.MaxAhead, Window: j.Window, LongestWindow: j.LongestWindow,
		State: State(max(slices.Index(stateNames[:], j.State), 0)), Incarnation: j.Incarnation, Floor: never, Created: j.Created, Nonce: j.Nonce,
		configExtras: configExtras{MovedTo: j.MovedTo, Prefix: j.Prefix, LowBits: j.LowBits},
	}
	if j.Floor != nil {
		r.Floor = *j.Floor
	}
	if err != nil {
		return r, err
	}
	if most := int64(maxWindow / time.Millisecond); r.Window > most || r.MaxAhead > r.Window || r.LongestWindow > most {
		return r, damaged(key, "window, longest_window or max_ahead is out of range")
	}
	switch err := r.config().Check(); {
	case err != nil:
		return r, damaged(key, err.Error())
	case r.LongestWindow < r.Window:
		return r, damaged(key, "longest_window is shorter than window")
	case r.State < Attached:
		return r, damaged(key, fmt.Sprintf("state is %q", j.State))
	case r.Incarnation == 0:
		return r, damaged(key, "it has no incarnation")
	case r.Floor != never && !inRange(r.Floor) || !inRange(r.Created):
		return r, damaged(key, "a time is out of range")
	case j.Nodes != nil && (len(j.Nodes) != 2 || j.Nodes[0] > j.Nodes[1]):
		return r, damaged(key, "nodes is not a range of node IDs")
	case !printable(r.MovedTo, movedToMost):
		return r, damaged(key, fmt.Sprintf("moved_to is not a text of at most %d printable ASCII characters", movedToMost))
	}
	if j.Nodes != nil {
		r.Nodes = nodeRange{j.Nodes[0], j.Nodes[1], true}
	}
	return r, nil
}

// printable reports whether a text has at most so many bytes, all printable
// ASCII except the space.
func printable(text string, most int) bool {
	return len(text) <= most && strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

// The states of a node record.
const (
	nodeHeld    = "held"    // its owner may use it until the mark
	nodeClosing = "closing" // as held, but its owner can no longer extend it
	nodeFree    = "free"    // given back, fenced or repaired
)

// A nodeRecord is the record of one node ID. Times are Unix milliseconds. The
// nonce is new in every write, so that no two writes have the same bytes.
type nodeRecord struct {
	Nonce string `json:"nonce"`
	Owner string `json:"owner"`
	Until int64  `json:"until"`
	Wall  int64  `json:"wall"`
	State string `json:"state"`
	Host  string `json:"host"`

	// From is where the owner's grant began, and Over the record that its claim
	// replaced. A fence and a repair, which end the grant, drop both.
	From maybe `json:"-"`
	Over over  `json:"-"`

	// Gap is the longest span below the mark that no window ever covered. A
	// repair gives it back.
	Gap span `json:"-"`

	// Spoiled is a span above the mark that windows have already covered, left
	// by a repair. No window reaches into it.
	Spoiled span `json:"-"`
}

// A maybe is a time that a record may lack.
type maybe struct {
	time int64
	set  bool
}

// An over identifies the record that a claim replaced. The zero over means that
// there was none.
type over struct {
	Until int64  `json:"until"`
	Nonce string `json:"nonce"`
}

// A nodeJSON is the written form of a nodeRecord: JSON in this order.
type nodeJSON struct {
	Version int `json:"v"`
	nodeRecord
	From    *int64 `json:"from,omitempty"`
	Over    *over  `json:"over,omitempty"`
	Gap     *span  `json:"gap,omitempty"`
	Spoiled *span  `json:"spoiled,omitempty"`
}

// A span is the time from the first value up to the second, exclusive, in Unix
// milliseconds. It is empty unless the first is below the second.
type span [2]int64

// UnmarshalJSON accepts exactly two numbers.
func (s *span) UnmarshalJSON(text []byte) error {
	var v []int64
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if len(v) != 2 {
		return fmt.Errorf("a span of time has 2 numbers, not %d", len(v))
	}
	*s = span(v)
	return nil
}

func (s span) length() int64 { return max(s[1]-s[0], 0) }

func (s span) orNil() *span {
	if s.length() == 0 {
		return nil
	}
	return &s
}

func (r nodeRecord) encode() []byte {
	j := nodeJSON{Version: version, nodeRecord: r, Gap: r.Gap.orNil(), Spoiled: r.Spoiled.orNil()}
	if r.From.set {
		j.From = &r.From.time
	}
	if r.Over != (over{}) {
		j.Over = &r.Over
	}
	return encode(j)
}

// held reports whether the owner may use the node ID until the mark.
func (r nodeRecord) held() bool { return r.State != nodeFree }

// takenAway reports whether a fence or a repair freed it. Its owner, if it had
// one, may use the node ID until it learns of that, or until its window ends.
func (r nodeRecord) takenAway() bool { return r.State == nodeFree && r.Owner == "" }

// takeAway takes the node ID away from its owner, for a fence or a repair.
func (r *nodeRecord) takeAway(now int64) {
	r.Nonce, r.Owner, r.State, r.Wall = newToken(), "", nodeFree, now
	r.From, r.Over = maybe{}, over{}
}

func (r nodeRecord) info(node uint64) NodeInfo {
	return NodeInfo{
		Node: node, Owner: r.Owner, Host: r.Host, Until: timeOf(r.Until), Written: timeOf(r.Wall),
		Held: r.held(), Closing: r.State == nodeClosing,
	}
}

// decodeNode parses the record of a node ID.
func decodeNode(key string, value []byte) (nodeRecord, error) {
	var j nodeJSON
	err := decode(key, value, &j, &j.Version)
	r := j.nodeRecord
	if err != nil {
		return r, err
	}
	if j.From != nil {
		if r.From = (maybe{*j.From, true}); !inRange(*j.From) || *j.From > r.Until {
			return r, damaged(key, "from is out of range")
		}
	}
	if j.Over != nil {
		if r.Over = *j.Over; r.Over.Nonce == "" || !inRange(r.Over.Until) {
			return r, damaged(key, "over is not the mark and the nonce of a record")
		}
	}
	for _, s := range []struct {
		name string
		from *span
		to   *span
	}{{"gap", j.Gap, &r.Gap}, {"spoiled", j.Spoiled, &r.Spoiled}} {
		switch {
		case s.from == nil:
			continue
		case s.from.length() == 0 || !inRange(s.from[0]) || !inRange(s.from[1]):
			return r, damaged(key, s.name+" is not a span of time")
		}
		*s.to = *s.from
	}
	switch {
	case r.State != nodeHeld && r.State != nodeClosing && r.State != nodeFree:
		return r, damaged(key, fmt.Sprintf("state is %q", r.State))
	case r.Nonce == "":
		return r, damaged(key, "it has no nonce")
	case !inRange(r.Until) || !inRange(r.Wall):
		return r, damaged(key, "a time is out of range")
	case r.Gap.length() > 0 && r.Gap[1] > r.Until:
		return r, damaged(key, "gap ends above until")
	case r.Spoiled.length() > 0 && r.Spoiled[0] < r.Until:
		return r, damaged(key, "spoiled begins below until")
	}
	return r, nil
}

// readNode parses the key and the record of a node ID.
func readNode(name, key string, value []byte) (node uint64, r nodeRecord, err error) {
	if node, err = nodeOf(name, key); err == nil {
		r, err = decodeNode(key, value)
	}
	return node, r, err
}

// inRange reports whether windows can be added to a time without overflow, and
// whether time.Duration arithmetic can handle it.
func inRange(v int64) bool { return v >= -maxTime && v <= maxTime }

const maxTime = math.MaxInt64 / int64(time.Millisecond) / 2

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("grant: cannot encode a record: %v", err))
	}
	return b
}

// decode parses a record strictly. If it does not parse, it may have a newer or
// an older version. v is that of into.
func decode(key string, value []byte, into any, v *int) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && *v == version {
		if _, err := d.Token(); err != io.EOF {
			return damaged(key, "there is data after the record")
		}
		return nil
	}
	var head struct {
		Version json.RawMessage `json:"v"`
	}
	if json.Unmarshal(value, &head) != nil {
		if text, ok := strings.CutPrefix(string(value), ErrNotSent.Error()+": "); ok {
			return damaged(key, text) // see get
		}
		return damaged(key, "it is not JSON")
	}
	switch v, _ := strconv.ParseInt(string(head.Version), 10, 64); {
	case v > version: // even if it is out of range
		return fmt.Errorf("%w: %s has version %s, this program knows %d", ErrNewerVersion, key, head.Version, version)
	case v < version:
		return damaged(key, fmt.Sprintf("its version is %q, and only version %d is read", head.Version, version))
	}
	return damaged(key, err.Error())
}

func damaged(key, why string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, key, why) }
