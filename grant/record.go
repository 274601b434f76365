package grant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// version is that of all records. A program leaves records of a newer version
// alone.
const version = 1

// MaxName is the most characters that the name of a sequencer has.
const MaxName = 128

// CheckName says what is wrong with the name of a sequencer.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("grant: the name of a sequencer has 1 to %d characters, not %d", MaxName, len(name))
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case i > 0 && strings.IndexByte("._-:", c) >= 0:
		default:
			return fmt.Errorf("grant: name %q of a sequencer: %q at offset %d: use ASCII letters and digits, and after the first also . _ : and -, as in orders-2026",
				name, name[i:i+1], i)
		}
	}
	return nil
}

// Keys of the records, see docs/protocol.md.
const root = "v1/"

func configKey(name string) string   { return root + name + "/config" }
func nodesPrefix(name string) string { return root + name + "/n/" }

// nodeKey is the key of a node number: decimal, with as many digits as the
// layout's greatest has, so that keys list in order.
func nodeKey(name string, node, most uint64) string {
	return fmt.Sprintf("%s%0*d", nodesPrefix(name), len(strconv.FormatUint(most, 10)), node)
}

// nodeOf is the node number of a key that nodeKey made.
func nodeOf(name, key string) (uint64, error) {
	digits, ok := strings.CutPrefix(key, nodesPrefix(name))
	if !ok {
		return 0, fmt.Errorf("%w: key %q is not that of a node number of %s", ErrDamaged, key, name)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: key %q does not end in a node number", ErrDamaged, key)
	}
	return n, nil
}

// ms is t in Unix milliseconds, rounded up; the zero time is 0.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	v := t.UnixMilli()
	if t.Sub(time.UnixMilli(v)) > 0 {
		v++
	}
	return v
}

// timeOf is the time of Unix milliseconds; 0 is the zero time.
func timeOf(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

// A configRecord is what the store has of a sequencer, as JSON in this order.
// Times and durations are in milliseconds.
type configRecord struct {
	Version     int         `json:"v"`
	Layout      firn.Layout `json:"layout"`
	MaxAhead    int64       `json:"max_ahead"`
	Window      int64       `json:"window"`
	State       State       `json:"state"`
	Incarnation uint64      `json:"incarnation"`
	Floor       int64       `json:"floor"`
	Created     int64       `json:"created"`
	Nonce       string      `json:"nonce"`
}

func newConfigRecord(c Config) configRecord {
	return configRecord{
		Version: version, Layout: c.Layout, State: Attached, Incarnation: 1,
		MaxAhead: c.MaxAhead.Milliseconds(), Window: c.Window.Milliseconds(),
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
	}
}

func (r configRecord) encode() []byte { return encode(r) }

// decodeConfig reads the record of a sequencer.
func decodeConfig(key string, value []byte) (r configRecord, err error) {
	if err := decode(key, value, &r); err != nil {
		return r, err
	}
	if r.Window > int64(maxWindow/time.Millisecond) || r.MaxAhead > r.Window {
		return r, damaged(key, "window or max_ahead is out of range")
	}
	switch err := r.config().Check(); {
	case err != nil:
		return r, damaged(key, err.Error())
	case r.State < Attached:
		return r, damaged(key, "it has no state")
	case r.Incarnation == 0:
		return r, damaged(key, "it has no incarnation")
	case !inRange(r.Floor) || !inRange(r.Created):
		return r, damaged(key, "a time is out of range")
	}
	return r, nil
}

// What a node record says of its number.
const (
	flagHeld    = "held"    // its owner may use it until the mark
	flagClosing = "closing" // as held, but its owner can extend it no more
	flagFree    = "free"    // given back, or fenced
)

// A nodeRecord is what the store has of one node number, as JSON in this order.
// Times are Unix milliseconds. The nonce is new in every write, so that no two
// writes have the same bytes.
type nodeRecord struct {
	Version int    `json:"v"`
	Nonce   string `json:"nonce"`
	Owner   string `json:"owner"`
	Until   int64  `json:"until"`
	Wall    int64  `json:"wall"`
	State   string `json:"state"`
	Host    string `json:"host"`
}

func (r nodeRecord) encode() []byte { return encode(r) }

// held reports whether somebody may use the number until the mark.
func (r nodeRecord) held() bool { return r.State != flagFree }

func (r nodeRecord) info(node uint64) NodeInfo {
	return NodeInfo{
		Node: node, Owner: r.Owner, Host: r.Host, Until: timeOf(r.Until), Wall: timeOf(r.Wall),
		Held: r.held(), Closing: r.State == flagClosing,
	}
}

// decodeNode reads the record of a node number.
func decodeNode(key string, value []byte) (r nodeRecord, err error) {
	if err := decode(key, value, &r); err != nil {
		return r, err
	}
	switch {
	case r.State != flagHeld && r.State != flagClosing && r.State != flagFree:
		return r, damaged(key, fmt.Sprintf("state is %q", r.State))
	case r.Nonce == "":
		return r, damaged(key, "it has no nonce")
	case !inRange(r.Until) || !inRange(r.Wall):
		return r, damaged(key, "a time is out of range")
	}
	return r, nil
}

// inRange reports whether a time leaves room for windows to be added to it, and
// is one that time.Duration arithmetic can handle.
func inRange(v int64) bool { return v >= -maxTime && v <= maxTime }

const maxTime = math.MaxInt64 / int64(time.Millisecond) / 2

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("grant: a record of our own making cannot be written: %v", err))
	}
	return b
}

// decode reads a record strictly. What does not read as one of this version may
// be one of a newer.
func decode(key string, value []byte, into interface{ ver() int }) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && into.ver() == version {
		if d.More() {
			return damaged(key, "something follows it")
		}
		return nil
	}
	var head struct {
		Version int `json:"v"`
	}
	if json.Unmarshal(value, &head) != nil {
		return damaged(key, "it is not JSON")
	}
	switch {
	case head.Version > version:
		return fmt.Errorf("%w: %s has version %d, this program knows %d", ErrNewerVersion, key, head.Version, version)
	case head.Version < 1:
		return damaged(key, "it has no version")
	}
	return damaged(key, err.Error())
}

func (r *configRecord) ver() int { return r.Version }
func (r *nodeRecord) ver() int   { return r.Version }

func damaged(key, why string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, key, why) }
