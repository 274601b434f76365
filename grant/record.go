package grant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/mutant"
)

// version is the newest version of records that this package knows, and the one
// for new sequencers. The package reads all older versions, writes the version
// of the sequencer's configuration (see Upgrade), and does not touch records of
// a newer version.
const version = 2

// MaxName is the maximum length of a sequencer's name, in characters.
const MaxName = 128

// CheckName returns an error if name is not a valid name of a sequencer.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("grant: the name of a sequencer must have 1 to %d characters, not %d", MaxName, len(name))
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case i > 0 && strings.IndexByte("._-:", c) >= 0:
		default:
			return fmt.Errorf("grant: name %q of a sequencer: %q at offset %d: use ASCII letters and digits, and after the first character also . _ : and -, as in orders-2026",
				name, name[i:i+1], i)
		}
	}
	return nil
}

// Keys of the records; see docs/protocol.md.
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
	if t.Sub(time.UnixMilli(v)) > 0 && !mutant.On(mutant.RoundDown) {
		v++
	}
	return v
}

// timeOf returns the time of Unix milliseconds; Never is the zero time.
func timeOf(v int64) time.Time {
	if v == Never || v == 0 && mutant.On(mutant.ZeroIsNoTime) {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

// A configRecord is the record of a sequencer. Times and durations are in
// milliseconds.
type configRecord struct {
	Version       int // 0: there is no record yet
	Layout        firn.Layout
	MaxAhead      int64
	Window        int64
	LongestWindow int64 // the longest Window it ever had; its Window in version 1, which does not contain it
	State         State
	Incarnation   uint64
	Floor         int64 // Never if it was never fenced
	Created       int64
	Nonce         string
}

// A configJSON is the written form of a configRecord: JSON in this order.
type configJSON struct {
	Version       int         `json:"v"`
	Layout        firn.Layout `json:"layout"`
	MaxAhead      int64       `json:"max_ahead"`
	Window        int64       `json:"window"`
	LongestWindow int64       `json:"longest_window,omitempty"` // since version 2
	State         State       `json:"state"`
	Incarnation   uint64      `json:"incarnation"`
	Floor         *int64      `json:"floor"` // null without a fence; 0 in version 1
	Created       int64       `json:"created"`
	Nonce         string      `json:"nonce"`
}

func newConfigRecord(c Config) configRecord {
	return configRecord{
		Version: version, Layout: c.Layout, State: Attached, Incarnation: 1, Floor: Never,
		MaxAhead: c.MaxAhead.Milliseconds(), Window: c.Window.Milliseconds(), LongestWindow: c.Window.Milliseconds(),
	}
}

func (r configRecord) config() Config {
	return Config{
		Layout:   r.Layout,
		MaxAhead: time.Duration(r.MaxAhead) * time.Millisecond,
		Window:   time.Duration(r.Window) * time.Millisecond,
	}
}

func (r configRecord) info(name string) Info {
	return Info{
		Name: name, State: r.State, Config: r.config(), Incarnation: r.Incarnation,
		Floor: timeOf(r.Floor), Created: timeOf(r.Created),
		LongestWindow: time.Duration(r.LongestWindow) * time.Millisecond, Version: r.Version,
	}
}

func (r configRecord) encode() []byte {
	j := configJSON{
		Version: r.Version, Layout: r.Layout, MaxAhead: r.MaxAhead, Window: r.Window, State: r.State,
		Incarnation: r.Incarnation, Created: r.Created, Nonce: r.Nonce,
	}
	switch {
	case r.Version > 1:
		j.LongestWindow = r.LongestWindow
		if r.Floor != Never {
			j.Floor = &r.Floor
		}
	case r.Floor == Never:
		j.Floor = new(int64)
	default:
		floor := r.Floor
		if floor == 0 {
			floor = 1 // 0 would mean that there was no fence
		}
		j.Floor = &floor
	}
	return encode(j)
}

// decodeConfig parses the record of a sequencer.
func decodeConfig(key string, value []byte) (configRecord, error) {
	var j configJSON
	err := decode(key, value, &j)
	r := configRecord{
		Version: j.Version, Layout: j.Layout, MaxAhead: j.MaxAhead, Window: j.Window, LongestWindow: j.LongestWindow,
		State: j.State, Incarnation: j.Incarnation, Floor: Never, Created: j.Created, Nonce: j.Nonce,
	}
	if j.Floor != nil && (*j.Floor != 0 || r.Version > 1) {
		r.Floor = *j.Floor
	}
	if err != nil {
		return r, err
	}
	if r.Version == 1 {
		if r.LongestWindow != 0 {
			return r, damaged(key, "longest_window is not allowed in a record of version 1")
		}
		r.LongestWindow = r.Window
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
		return r, damaged(key, "it has no state")
	case r.Incarnation == 0:
		return r, damaged(key, "it has no incarnation")
	case r.Floor != Never && !inRange(r.Floor) || !inRange(r.Created):
		return r, damaged(key, "a time is out of range")
	}
	return r, nil
}

// The states of a node record.
const (
	flagHeld    = "held"    // its owner may use it until the mark
	flagClosing = "closing" // as held, but its owner can no longer extend it
	flagFree    = "free"    // given back, fenced or repaired
)

// A nodeRecord is the record of one node ID. Times are Unix milliseconds. The
// nonce is new in every write, so that no two writes have the same bytes.
type nodeRecord struct {
	Version int    `json:"v"`
	Nonce   string `json:"nonce"`
	Owner   string `json:"owner"`
	Until   int64  `json:"until"`
	Wall    int64  `json:"wall"`
	State   string `json:"state"`
	Host    string `json:"host"`

	// Gap is the longest span below the mark that no window ever covered. A
	// repair gives it back.
	Gap span `json:"-"`

	// Spoiled is a span above the mark that windows have already covered, left
	// by a repair. No window reaches into it.
	Spoiled span `json:"-"`
}

// A nodeJSON is the written form of a nodeRecord: JSON in this order.
type nodeJSON struct {
	nodeRecord
	Gap     *span `json:"gap,omitempty"`     // since version 2
	Spoiled *span `json:"spoiled,omitempty"` // since version 2
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
	j := nodeJSON{r, r.Gap.orNil(), r.Spoiled.orNil()}
	if j.Gap != nil || j.Spoiled != nil {
		j.Version = max(j.Version, 2)
	}
	return encode(j)
}

// held reports whether the owner may use the node ID until the mark.
func (r nodeRecord) held() bool { return r.State != flagFree }

// takenAway reports whether a fence or a repair freed it. Its owner, if it had
// one, may use the node ID until it learns of that, or until its window ends.
func (r nodeRecord) takenAway() bool { return r.State == flagFree && r.Owner == "" }

func (r nodeRecord) info(node uint64) NodeInfo {
	return NodeInfo{
		Node: node, Owner: r.Owner, Host: r.Host, Until: timeOf(r.Until), Wall: timeOf(r.Wall),
		Held: r.held(), Closing: r.State == flagClosing,
	}
}

// decodeNode parses the record of a node ID.
func decodeNode(key string, value []byte) (nodeRecord, error) {
	var j nodeJSON
	err := decode(key, value, &j)
	r := j.nodeRecord
	if err != nil {
		return r, err
	}
	for _, s := range []struct {
		name string
		from *span
		to   *span
	}{{"gap", j.Gap, &r.Gap}, {"spoiled", j.Spoiled, &r.Spoiled}} {
		switch {
		case s.from == nil:
			continue
		case r.Version == 1:
			return r, damaged(key, s.name+" is not allowed in a record of version 1")
		case s.from.length() == 0 || !inRange(s.from[0]) || !inRange(s.from[1]):
			return r, damaged(key, s.name+" is not a span of time")
		}
		*s.to = *s.from
	}
	switch {
	case r.State != flagHeld && r.State != flagClosing && r.State != flagFree:
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

// decode parses a record strictly. If it does not parse as a known version, it
// may have a newer one.
func decode(key string, value []byte, into interface{ ver() int }) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if v := into.ver(); err == nil && v >= 1 && v <= version {
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
	switch v, numErr := strconv.ParseInt(string(head.Version), 10, 64); {
	case numErr == nil && v < 1, len(head.Version) == 0:
		return damaged(key, "it has no version")
	case v > version: // even if it is out of range
		return fmt.Errorf("%w: %s has version %s, this program knows %d", ErrNewerVersion, key, head.Version, version)
	case numErr != nil:
		return damaged(key, fmt.Sprintf("its version %s is not a positive integer", head.Version))
	}
	return damaged(key, err.Error())
}

func (j *configJSON) ver() int { return j.Version }
func (j *nodeJSON) ver() int   { return j.Version }

func damaged(key, why string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, key, why) }
