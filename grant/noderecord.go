package grant

import (
	"encoding/json"
	"fmt"
)

// maxHost is the maximum length of a host's name in a record, in bytes.
const maxHost = 64

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

// A nodeJSON is the written form of a nodeRecord: JSON in this order.
type nodeJSON struct {
	Version int `json:"v"`
	nodeRecord
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

// A span is the time from one value up to another, exclusive, in Unix
// milliseconds. It is empty unless from is below until.
type span struct{ from, until int64 }

// MarshalJSON returns the two numbers as an array.
func (s span) MarshalJSON() ([]byte, error) { return json.Marshal([2]int64{s.from, s.until}) }

// UnmarshalJSON accepts exactly two numbers.
func (s *span) UnmarshalJSON(text []byte) error {
	var v []int64
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if len(v) != 2 {
		return fmt.Errorf("a span of time has 2 numbers, not %d", len(v))
	}
	*s = span{v[0], v[1]}
	return nil
}

func (s span) length() int64 { return max(s.until-s.from, 0) }

// IsZero makes a record omit the span if it is empty.
func (s span) IsZero() bool { return s.length() == 0 }

// valid reports whether a span that was read can be one, or is absent.
func (s span) valid() bool {
	return s == span{} || s.length() > 0 && inRange(s.from) && inRange(s.until)
}

func (r nodeRecord) encode() []byte { return encode(nodeJSON{version, r}) }

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
	case r.Gap.length() > 0 && r.Gap.until > r.Until:
		err = damagedError(key, "gap ends above until")
	case r.Spoiled.length() > 0 && r.Spoiled.from < r.Until:
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

func (r nodeRecord) info(node uint64) NodeInfo {
	return NodeInfo{
		Node: node, Owner: r.Owner, Host: r.Host, Until: timeOf(r.Until), Written: timeOf(r.Wall),
		Held: r.held(), Closing: r.State == nodeClosing,
	}
}

// held reports whether the owner may use the node ID until the mark.
func (r nodeRecord) held() bool { return r.State != nodeFree }

// takenAway reports whether a fence or a repair freed it. Its owner, if it had
// one, may use the node ID until it learns of that, or until its window ends.
func (r nodeRecord) takenAway() bool { return r.State == nodeFree && r.Owner == "" }

// takeAway takes the node ID away from its owner, for a fence or a repair.
func (r *nodeRecord) takeAway(now int64) {
	r.Nonce, r.Owner, r.State, r.Wall = newToken(random), "", nodeFree, now
	r.From, r.Replaced = optionalTime{}, recordID{}
}

// windowsEnd returns the end of all windows that the record knows of.
func (r nodeRecord) windowsEnd() int64 {
	if r.Spoiled.length() > 0 {
		return r.Spoiled.until
	}
	return r.Until
}

// mergeRecords returns a record for a node ID with two histories: no window of
// it reaches into a span that a window of either has covered.
func mergeRecords(a, b nodeRecord) nodeRecord {
	if b.Until > a.Until {
		a, b = b, a
	}
	next := a
	next.Gap, next.Spoiled = span{}, span{}
	for _, r := range []nodeRecord{a, b} {
		above := span{max(r.Spoiled.from, a.Until), r.Spoiled.until}
		switch {
		case above.length() == 0:
		case next.Spoiled.length() == 0:
			next.Spoiled = above
		default:
			next.Spoiled = span{min(next.Spoiled.from, above.from), max(next.Spoiled.until, above.until)}
		}
	}
	// What neither has covered: below the lower mark both gaps say so, and
	// above what the lower record knows of, that of the other.
	low := span{max(a.Gap.from, b.Gap.from), min(a.Gap.until, b.Gap.until)}
	high := span{max(a.Gap.from, b.windowsEnd()), a.Gap.until}
	if next.Gap = low; high.length() > low.length() {
		next.Gap = high
	}
	return next
}
