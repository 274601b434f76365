package grant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
)

// version is the version of records, the only one that this package reads and
// writes. It does not touch records of a newer version.
const version = 3

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
	case j.FenceFloor != nil && !inRange(*j.FenceFloor),
		j.CreateFloor != nil && !inRange(*j.CreateFloor), !inRange(j.Created):
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
		if err := i.Config.checkRecord(); err != nil {
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
		i.Config.Nodes = &NodeRange{j.Nodes[0], j.Nodes[1]} // another layout may have had them
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
func printable(text string, maxLen int) bool {
	return len(text) <= maxLen && strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

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
			// From a store; see get. It says itself that the record is damaged.
			return damagedError(key, strings.TrimSuffix(text, ": "+ErrDamaged.Error()))
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

// truncate returns s, or as many whole characters of it as fit in n bytes.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
