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

// keyRoot begins the keys of all records; see docs/protocol.md.
const keyRoot = "v1/"

func configKey(name string) string   { return keyRoot + name + "/config" }
func nodesPrefix(name string) string { return keyRoot + name + "/n/" }

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

// ms returns t in Unix milliseconds, rounded up; of the zero time, never.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
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

// An infoJSON is the record of a sequencer: an Info as JSON, in this order.
// Times and durations are in milliseconds. Members claim only Nodes, and
// nothing if MovedTo is set.
type infoJSON struct {
	Version       int         `json:"v"`
	Layout        firn.Layout `json:"layout"`
	MaxAhead      int64       `json:"max_ahead"`
	Window        int64       `json:"window"`
	LongestWindow int64       `json:"longest_window"`
	State         string      `json:"state"`
	Incarnation   uint64      `json:"incarnation"`
	FenceFloor    *int64      `json:"floor"` // that of the last fence; null if there was none
	Created       int64       `json:"created"`
	Nonce         string      `json:"nonce"`
	Nodes         []uint64    `json:"nodes,omitempty"` // two numbers
	MovedTo       string      `json:"moved_to,omitempty"`
	Prefix        string      `json:"prefix,omitempty"`
	CreateFloor   *int64      `json:"begin,omitempty"` // the floor given at creation
	Changed       *changeJSON `json:"changed,omitempty"`
}

// A changeJSON is a Change as JSON.
type changeJSON struct {
	What string `json:"what"`
	By   string `json:"by"`
	At   int64  `json:"at"`
}

// The maximum lengths of moved_to, and of what and by of a change, in bytes.
const (
	maxMovedTo = 512
	maxWhat    = 16
	maxBy      = 64
)

func (i Info) encode() []byte {
	c := i.Config
	j := infoJSON{
		Version: version, Layout: c.Layout, MaxAhead: c.MaxAhead.Milliseconds(),
		Window: c.Window.Milliseconds(), LongestWindow: i.LongestWindow.Milliseconds(),
		State: i.State.String(), Incarnation: i.Incarnation, Created: ms(i.Created),
		Nonce: i.nonce, MovedTo: i.MovedTo, Prefix: c.Prefix,
	}
	if !i.fenceFloor.IsZero() {
		j.FenceFloor = new(ms(i.fenceFloor))
	}
	if !i.createFloor.IsZero() {
		j.CreateFloor = new(ms(i.createFloor))
	}
	if l := i.LastChange; l != (Change{}) {
		j.Changed = &changeJSON{l.What, l.By, ms(l.At)}
	}
	if c.Nodes != nil {
		j.Nodes = []uint64{c.Nodes.Lo, c.Nodes.Hi}
	}
	return encode(j)
}

// decodeInfo parses the record of a sequencer.
func decodeInfo(key string, value []byte) (i Info, err error) {
	var j infoJSON
	if err := decode(key, value, &j, &j.Version); err != nil {
		return i, err
	}
	bad := ""
	i.State = State(slices.Index(stateNames[:], j.State))
	switch most := maxWindow.Milliseconds(); {
	case j.Window > most || j.MaxAhead > j.Window || j.LongestWindow > most:
		bad = "window, longest_window or max_ahead is out of range"
	case j.LongestWindow < j.Window:
		bad = "longest_window is shorter than window"
	case j.Nodes != nil && (len(j.Nodes) != 2 || j.Nodes[0] > j.Nodes[1]):
		bad = "nodes is not a range of node IDs"
	case j.FenceFloor != nil && !inRange(*j.FenceFloor) || j.CreateFloor != nil && !inRange(*j.CreateFloor) || !inRange(j.Created):
		bad = "a time is out of range"
	case j.Incarnation == 0:
		bad = "it has no incarnation"
	case j.Nonce == "":
		bad = "it has no nonce"
	case j.Changed != nil && (j.Changed.What == "" || !printable(j.Changed.What, maxWhat) ||
		len(j.Changed.By) > maxBy || !inRange(j.Changed.At)):
		bad = "changed is not a change"
	case !printable(j.MovedTo, maxMovedTo):
		bad = fmt.Sprintf("moved_to is not a text of at most %d printable ASCII characters", maxMovedTo)
	case i.State < Attached || i.State > Purged:
		bad = fmt.Sprintf("state is %q", j.State)
	default:
		i.Config = Config{
			Layout: j.Layout, MaxAhead: time.Duration(j.MaxAhead) * time.Millisecond,
			Window: time.Duration(j.Window) * time.Millisecond, Prefix: j.Prefix,
		}
		if err := i.Config.Check(); err != nil {
			bad = err.Error()
		}
	}
	if bad != "" {
		return Info{}, damagedError(key, bad)
	}
	i.Name = strings.TrimSuffix(strings.TrimPrefix(key, keyRoot), "/config")
	i.Incarnation, i.Created = j.Incarnation, timeOf(j.Created)
	i.LongestWindow, i.MovedTo, i.nonce = time.Duration(j.LongestWindow)*time.Millisecond, j.MovedTo, j.Nonce
	if j.Nodes != nil {
		i.Config.Nodes = &Range{j.Nodes[0], j.Nodes[1]} // another layout may have had them
	}
	if j.FenceFloor != nil {
		i.fenceFloor = timeOf(*j.FenceFloor)
	}
	if j.CreateFloor != nil {
		i.createFloor = timeOf(*j.CreateFloor)
	}
	if l := j.Changed; l != nil {
		i.LastChange = Change{l.What, l.By, timeOf(l.At)}
	}
	i.Floor = i.laterFloor()
	return i, nil
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

	// From is where the owner's grant began, and Replaced the record that its
	// claim replaced. A fence and a repair, which end the grant, drop both.
	From     optionalTime `json:"from,omitzero"`
	Replaced recordID     `json:"over,omitzero"`

	// Gap is a span below the mark that no window ever covered. A repair gives
	// it back.
	Gap span `json:"gap,omitzero"`

	// Spoiled is a span above the mark that windows have already covered, left
	// by a repair. No window reaches into it.
	Spoiled span `json:"spoiled,omitzero"`
}

// An optionalTime is a time that a record may lack.
type optionalTime struct {
	time int64
	set  bool
}

func (t optionalTime) MarshalJSON() ([]byte, error) { return json.Marshal(t.time) }

func (t *optionalTime) UnmarshalJSON(text []byte) error {
	t.set = string(text) != "null"
	return json.Unmarshal(text, &t.time)
}

// A recordID identifies a record of a node ID by its mark and nonce. The zero
// recordID means that there was none.
type recordID struct {
	Until int64  `json:"until"`
	Nonce string `json:"nonce"`
}

// A nodeJSON is the written form of a nodeRecord: JSON in this order.
type nodeJSON struct {
	Version int `json:"v"`
	nodeRecord
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

// IsZero makes a record omit the span if it is empty.
func (s span) IsZero() bool { return s.length() == 0 }

// valid reports whether a span that was read can be one, or is absent.
func (s span) valid() bool {
	return s == span{} || s.length() > 0 && inRange(s[0]) && inRange(s[1])
}

func (r nodeRecord) encode() []byte { return encode(nodeJSON{version, r}) }

// held reports whether the owner may use the node ID until the mark.
func (r nodeRecord) held() bool { return r.State != nodeFree }

// takenAway reports whether a fence or a repair freed it. Its owner, if it had
// one, may use the node ID until it learns of that, or until its window ends.
func (r nodeRecord) takenAway() bool { return r.State == nodeFree && r.Owner == "" }

// takeAway takes the node ID away from its owner, for a fence or a repair.
func (r *nodeRecord) takeAway(now int64) {
	r.Nonce, r.Owner, r.State, r.Wall = newToken(), "", nodeFree, now
	r.From, r.Replaced = optionalTime{}, recordID{}
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
	switch {
	case r.State != nodeHeld && r.State != nodeClosing && r.State != nodeFree:
		err = damagedError(key, fmt.Sprintf("state is %q", r.State))
	case r.Nonce == "":
		err = damagedError(key, "it has no nonce")
	case !inRange(r.Until) || !inRange(r.Wall):
		err = damagedError(key, "a time is out of range")
	case r.From.set && (!inRange(r.From.time) || r.From.time > r.Until):
		err = damagedError(key, "from is out of range")
	case r.Replaced != recordID{} && (r.Replaced.Nonce == "" || !inRange(r.Replaced.Until)):
		err = damagedError(key, "over is not the mark and the nonce of a record")
	case !r.Gap.valid():
		err = damagedError(key, "gap is not a span of time")
	case !r.Spoiled.valid():
		err = damagedError(key, "spoiled is not a span of time")
	case r.Gap.length() > 0 && r.Gap[1] > r.Until:
		err = damagedError(key, "gap ends above until")
	case r.Spoiled.length() > 0 && r.Spoiled[0] < r.Until:
		err = damagedError(key, "spoiled begins below until")
	}
	return r, err
}

// decodeNodeEntry parses the key and the record of a node ID.
func decodeNodeEntry(name, key string, value []byte) (node uint64, r nodeRecord, err error) {
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
			return damagedError(key, "there is data after the record")
		}
		return nil
	}
	var head struct {
		Version json.RawMessage `json:"v"`
	}
	if json.Unmarshal(value, &head) != nil {
		if text, ok := strings.CutPrefix(string(value), ErrNotSent.Error()+": "); ok {
			return damagedError(key, text) // see get
		}
		return damagedError(key, "it is not JSON")
	}
	switch v, _ := strconv.ParseInt(string(head.Version), 10, 64); {
	case v > version: // even if it is out of range
		return fmt.Errorf("%w: %s has version %s, this program knows %d", ErrNewerVersion, key, head.Version, version)
	case v < version:
		return damagedError(key, fmt.Sprintf("its version is %q, and only version %d is read", head.Version, version))
	}
	return damagedError(key, err.Error())
}

func damagedError(key, why string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, key, why) }
