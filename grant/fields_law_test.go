package grant

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// A fieldLaw has a row for each field of a record, with the operations that
// write it and the JSON that they leave: anew is a value that differs, and gone
// none. All other operations carry the field on.
type fieldLaw map[string]map[string]string

const anew, gone = "anew", ""

// numeral returns a number in decimal.
func numeral(n int64) string { return strconv.FormatInt(n, 10) }

// fieldsOf returns the fields of a record, by their names in JSON.
func fieldsOf(record any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(record)) {
		if tag := f.Tag.Get("json"); tag != "" {
			name, _, _ := strings.Cut(tag, ",")
			names = append(names, name)
		}
	}
	return names
}

// check compares a record before and after an operation.
func (l fieldLaw) check(t *testing.T, record any, operation string, before, after []byte) {
	t.Helper()
	parse := func(value []byte) (m map[string]json.RawMessage) {
		if err := json.Unmarshal(value, &m); err != nil {
			t.Fatalf("%s: %q: %v", operation, value, err)
		}
		return m
	}
	had, has := parse(before), parse(after)
	names := fieldsOf(record)
	for _, name := range names {
		row, ok := l[name]
		want, writes := row[operation]
		got := string(has[name])
		switch {
		case !ok:
			t.Errorf("no row says which operations write the field %q", name)
		case !writes && got != string(had[name]):
			t.Errorf("%s does not carry on %s: it was %s, and is %s", operation, name, had[name], got)
		case writes && want == anew && (got == "" || got == string(had[name])):
			t.Errorf("%s leaves %s %s", operation, name, got)
		case writes && want != anew && got != want:
			t.Errorf("%s makes %s %s, want %s; it was %s", operation, name, got, want, had[name])
		}
	}
	for name := range l {
		if !slices.Contains(names, name) {
			t.Errorf("a row of %q, which is no field", name)
		}
	}
}

// distinct fails unless a record has each of its fields but those left out, and
// no two values are equal: equal ones would hide an exchange.
func distinct(t *testing.T, record any, value []byte, except ...string) {
	t.Helper()
	var m map[string]json.RawMessage
	must.Do(t, json.Unmarshal(value, &m))
	seen := make(map[string]string)
	for _, name := range fieldsOf(record) {
		text := string(m[name])
		if slices.Contains(except, name) {
			continue
		}
		if other, twice := seen[text]; twice || text == "" || text == "null" {
			t.Errorf("the fixture has %s %s, as %q", name, text, other)
		}
		seen[text] = name
	}
}

const (
	lawLayout = "twitter,epoch=1970-01-01T00:00:00Z,even=2"
	lawEven   = "twitter,epoch=1970-01-01T00:00:00Z,even=5"
	lawOther  = "hazelcast,epoch=1970-01-01T00:00:00Z"
)

// lawInfo returns a sequencer whose fields all differ.
func lawInfo(state State) Info {
	return Info{
		Name: "s", State: state, Incarnation: 5, nonce: "0f", LongestWindow: 11 * time.Second,
		LastChange: Change{"law", "them", timeOf(rigTime - 80_000)},
		Created:    timeOf(rigTime - 900_000), fenceFloor: timeOf(rigTime - 40_000), createFloor: timeOf(rigTime - 50_000),
		Config: Config{
			Layout: firn.MustParseLayout(lawLayout), MaxAhead: time.Second, Window: 7 * time.Second,
			Nodes: &NodeRange{3, 9}, Prefix: "order",
		},
	}
}

// lawNode returns a record whose fields all differ, of a window that ended by
// every clock.
func lawNode(change func(*nodeRecord)) nodeRecord {
	r := nodeRecord{
		Nonce: "0e", Owner: "them", Until: rigTime - 20_000, Wall: rigTime - 29_000, State: nodeHeld, Host: "h",
		From: optionalTime{rigTime - 30_000, true}, Replaced: recordID{rigTime - 35_000, "0d"},
		Gap: span{rigTime - 70_000, rigTime - 60_000}, Spoiled: span{rigTime - 19_000, rigTime - 18_000},
	}
	if change != nil {
		change(&r)
	}
	return r
}

// lawTarget returns the sequencer of lawInfo as another store has it, where it
// was detached: what a move merges is more there, or less. The range of node
// IDs is the same, or the move is refused: see TestMoveRefused.
func lawTarget(more bool) Info {
	i := lawInfo(Detached)
	i.nonce, i.Config.MaxAhead, i.Config.Window = "0c", 500*time.Millisecond, 6*time.Second
	i.Config.Prefix = "user"
	by := int64(1000)
	if i.Incarnation, i.LongestWindow = 9, 13*time.Second; !more {
		by, i.Incarnation, i.LongestWindow = -by, 4, 8*time.Second
	}
	i.fenceFloor, i.createFloor, i.Created = timeOf(ms(i.fenceFloor)+by), timeOf(ms(i.createFloor)+by), timeOf(ms(i.Created)-by)
	return i
}

// A lawCase is an operation on whole sequencers, of one state.
type lawCase struct {
	name  string
	state State
	do    func(a, b Store) error
}

// moves reports whether the operation moves the sequencer from here.
func (c lawCase) moves() bool { return strings.HasPrefix(c.name, "move") && c.name != "move back" }

// stores returns the stores for the operation: here, and another one.
func (c lawCase) stores() (a, b *mapStore) {
	a, b = &mapStore{values: make(map[string][]byte)}, &mapStore{values: make(map[string][]byte)}
	here := lawInfo(c.state)
	switch c.name {
	case "move to more", "move to less":
		b.values["v1/s/config"] = lawTarget(c.name == "move to more").encode()
	case "move back":
		there := lawInfo(Attached)
		here.MovedTo, there.nonce = "etcd://b", "0b"
		b.values["v1/s/config"] = there.encode()
	}
	a.values["v1/s/config"] = here.encode()
	return a, b
}

func lawCases(t *testing.T) []lawCase {
	ctx := t.Context()
	now := func() time.Time { return timeOf(rigTime) }
	waiting := &WaitOptions{Now: now}
	usable := func(do func(s Store) (Info, error)) func(a, b Store) error {
		return func(a, _ Store) error {
			_, err := do(a)
			return err
		}
	}
	again := func(change func(c *Config, o *CreateOptions)) func(a, b Store) error {
		return usable(func(s Store) (Info, error) {
			c := Config{Layout: firn.MustParseLayout(lawLayout), MaxAhead: 2 * time.Second, Window: 5 * time.Second}
			o := &CreateOptions{Now: now}
			change(&c, o)
			return Create(ctx, s, "s", c, o)
		})
	}
	all := func(c *Config, o *CreateOptions) {
		c.Layout = firn.MustParseLayout(lawEven)
		c.Nodes, c.Prefix, c.Window = &NodeRange{1, 2}, "order", 15*time.Second
		o.Floor = timeOf(rigTime - 30_000)
	}
	window := func(d time.Duration) func(a, b Store) error {
		return usable(func(s Store) (Info, error) { return SetWindow(ctx, s, "s", d) })
	}
	nodes := func(r *NodeRange) func(a, b Store) error {
		return usable(func(s Store) (Info, error) { return SetNodes(ctx, s, "s", r, waiting) })
	}
	move := func(a, b Store) error {
		_, err := Move(ctx, Place{a, "etcd://a"}, Place{b, "etcd://b"}, "s", waiting)
		return err
	}
	return []lawCase{
		{"create what exists", Attached, again(func(c *Config, _ *CreateOptions) { *c = lawInfo(0).Config })},
		{"create again", Destroyed, again(func(*Config, *CreateOptions) {})},
		{"create again, all given", Destroyed, again(all)},
		{"create another", Purged, again(func(c *Config, _ *CreateOptions) { c.Layout, c.Prefix = firn.MustParseLayout(lawOther), "user" })},
		{"attach", Detached, usable(func(s Store) (Info, error) { return Attach(ctx, s, "s") })},
		{"detach", Attached, usable(func(s Store) (Info, error) { return Detach(ctx, s, "s", waiting) })},
		{"destroy", Attached, usable(func(s Store) (Info, error) { return Destroy(ctx, s, "s", waiting) })},
		{"purge", Destroyed, usable(func(s Store) (Info, error) { return Purge(ctx, s, "s") })},
		{"longer window", Attached, window(12 * time.Second)},
		{"shorter window", Attached, window(4 * time.Second)},
		{"narrow", Attached, nodes(&NodeRange{5, 9})},
		{"all nodes", Attached, nodes(nil)},
		{"fence", Attached, func(a, _ Store) error {
			_, err := Fence(ctx, a, "s", &FenceOptions{Now: now, LongestWindow: 14 * time.Second})
			return err
		}},
		{"repair", Attached, func(a, _ Store) error {
			_, err := Repair(ctx, a, "s", &RepairOptions{Now: now})
			return err
		}},
		{"move", Attached, move}, {"move to more", Attached, move}, {"move to less", Attached, move},
		{"move back", Detached, func(a, b Store) error { return move(b, a) }},
	}
}

// TestConfigFields: each operation writes the fields of a configuration that
// its row says, and carries all others on.
func TestConfigFields(t *testing.T) {
	created, twice := map[string]string{}, map[string]string{}
	for _, name := range []string{"create again", "create again, all given", "create another"} {
		created[name], twice[name] = numeral(rigTime), "6"
	}
	nonces, changes := make(map[string]string), make(map[string]string)
	law := fieldLaw{
		"v":       {},
		"created": created, "nonce": nonces, "changed": changes,
		"layout":    {"create again, all given": `"` + firn.MustParseLayout(lawEven).String() + `"`, "create another": `"` + firn.MustParseLayout(lawOther).String() + `"`},
		"max_ahead": {"create again": "2000", "create again, all given": "2000", "create another": "2000"},
		"window": {
			"create again": "5000", "create again, all given": "15000", "create another": "5000",
			"longer window": "12000", "shorter window": "4000",
		},
		"longest_window": {"create again, all given": "15000", "longer window": "12000", "fence": "14000", "move to more": "13000"},
		"state": {
			"create again": `"attached"`, "create again, all given": `"attached"`, "create another": `"attached"`,
			"attach": `"attached"`, "detach": `"detached"`, "destroy": `"destroyed"`, "purge": `"purged"`,
		},
		"incarnation": twice,
		"floor":       {"fence": numeral(rigTime + 1000 + 30_000 + 10_000), "move to more": numeral(rigTime - 39_000)},
		"nodes":       {"create again, all given": "[1,2]", "narrow": "[5,9]", "all nodes": gone},
		"moved_to":    {"moved from here": `"etcd://b"`, "move back": gone},
		"prefix":      {"create another": `"user"`},
		"begin":       {"create again, all given": numeral(rigTime - 30_000), "move to more": numeral(rigTime - 49_000)},
	}
	twice["fence"], twice["move to more"] = "6", "9"
	created["move to more"] = numeral(rigTime - 901_000)
	law["state"]["moved from here"], law["state"]["move back"] = `"detached"`, `"attached"`
	distinct(t, infoJSON{}, lawInfo(Attached).encode(), "moved_to")
	for _, more := range []bool{true, false} {
		distinct(t, infoJSON{}, lawTarget(more).encode(), "moved_to")
	}
	nonces["moved from here"], changes["moved from here"] = anew, anew
	for _, c := range lawCases(t) {
		if c.name != "repair" { // which finds nothing
			nonces[c.name] = anew
			if c.name != "create what exists" {
				changes[c.name] = anew
			}
		}
		a, b := c.stores()
		here := a.values["v1/s/config"]
		if err := c.do(a, b); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := a.values["v1/s/config"]
		if c.moves() {
			law.check(t, infoJSON{}, "moved from here", here, got)
			got = b.values["v1/s/config"]
		}
		law.check(t, infoJSON{}, c.name, here, got)
	}
}

// TestNodeFields: each operation on a whole sequencer writes the fields of a
// node ID's record that its row says, and carries all others on.
func TestNodeFields(t *testing.T) { synctest.Test(t, testNodeFields) }

func testNodeFields(t *testing.T) {
	far := func(r *nodeRecord) { // as a clock a day ahead wrote it
		const day = 86_400_000
		r.Until, r.Wall, r.Gap, r.Spoiled = rigTime+day, rigTime+day-7000, span{rigTime - 70_000, rigTime + day - 9000}, span{rigTime + day + 1000, rigTime + day + 2000}
		r.From, r.State = optionalTime{rigTime + day - 8000, true}, nodeFree
	}
	const floor = rigTime + 1000 + 30_000 + 10_000
	takenAway := func(rows map[string]string, value string) map[string]string {
		maps.Copy(rows, map[string]string{"fence": value, "fence, far": value, "repair, far": value})
		return rows
	}
	moved := func(value string) map[string]string {
		return map[string]string{"move": value, "move to more": value, "move to less": value, "move back": gone}
	}
	closing := map[string]string{"detach": anew, "destroy": anew, "narrow": anew}
	states := map[string]string{"detach": `"closing"`, "destroy": `"closing"`, "narrow": `"closing"`}
	for name := range moved("") {
		closing[name], states[name] = anew, `"free"`
	}
	json := func(s span) string { return fmt.Sprintf("[%d,%d]", s.from, s.until) }
	var farNode nodeRecord
	far(&farNode)
	law := fieldLaw{
		"v": {}, "host": {},
		"nonce":   takenAway(closing, anew),
		"state":   takenAway(states, `"free"`),
		"owner":   takenAway(map[string]string{}, `""`),
		"wall":    takenAway(map[string]string{}, numeral(rigTime)),
		"from":    takenAway(moved(gone), gone),
		"over":    takenAway(moved(gone), gone),
		"until":   {"fence": numeral(floor), "repair, far": numeral(farNode.Gap.from)},
		"gap":     {"fence": gone, "fence, far": json(span{floor, farNode.Gap.until}), "repair, far": gone},
		"spoiled": {"fence": gone, "repair, far": json(span{farNode.Gap.until, farNode.Spoiled.until})},
	}
	for _, change := range []func(*nodeRecord){nil, far} {
		r := lawNode(change)
		distinct(t, nodeJSON{}, r.encode())
		for _, c := range lawCases(t) {
			if change != nil && c.name != "fence" && c.name != "repair" {
				continue
			}
			a, b := c.stores()
			key := nodeKey("s", 4, lawInfo(c.state).Config.Layout.MaxNode())
			from := a
			switch c.name {
			case "move to more", "move to less":
				b.values[key] = lawNode(func(r *nodeRecord) { // of an earlier time of the same history
					r.Until, r.State, r.Owner, r.Host, r.Wall = r.Gap.from, nodeFree, "before", "i", r.Wall-70_000
					r.From, r.Gap, r.Spoiled = optionalTime{}, span{}, span{}
				}).encode()
			case "move back":
				from = b
			}
			from.values[key] = r.encode()
			if err := c.do(a, b); err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			name, got := c.name, a.values[key]
			switch {
			case change != nil:
				name += ", far"
			case c.moves():
				law.check(t, nodeJSON{}, "detach", r.encode(), a.values[key])
				got = b.values[key]
			}
			law.check(t, nodeJSON{}, name, r.encode(), got)
		}
	}
}

// TestMemberFields: a member writes the fields of its record that the row says,
// and carries all others on.
func TestMemberFields(t *testing.T) {
	law := fieldLaw{
		"v": {}, "gap": {}, "spoiled": {},
		"nonce": {"claim": anew, "give up": anew, "renew": anew, "release": anew},
		"owner": {"claim": anew},
		"until": {"claim": numeral(rigTime + 6000), "give up": numeral(rigTime), "renew": numeral(rigTime + 8000), "release": numeral(rigTime + 2000)},
		"wall":  {"claim": numeral(rigTime), "renew": numeral(rigTime + 2000), "release": numeral(rigTime + 2001)},
		"state": {"claim": `"held"`, "give up": `"free"`, "release": `"free"`},
		"host":  {"claim": `"us"`},
		"from":  {"claim": numeral(rigTime)},
		"over":  {"claim": fmt.Sprintf(`{"until":%d,"nonce":"0e"}`, int64(rigTime-20_000))},
	}
	free := lawNode(func(r *nodeRecord) { // whose gap is longer than that of the claim
		r.State, r.Gap, r.Spoiled = nodeFree, span{rigTime - 90_000, rigTime - 30_000}, span{rigTime + 50_000, rigTime + 90_000}
	})
	distinct(t, nodeJSON{}, free.encode())
	claim := func(r *rig) []byte {
		r.m.settings.host = "us"
		a := r.pickable()
		r.answer(event{Keys: a.Keys, Values: [][]byte{free.encode()}})
		return r.asks(actionCAS).Next
	}
	r := newRig(t, 0, nil)
	claimed := claim(r)
	law.check(t, nodeJSON{}, "claim", free.encode(), claimed)
	r.answer(event{Applied: true})
	other := r.m.seen.info
	other.nonce = "other"
	r.answer(event{Values: [][]byte{claimed, other.encode()}})
	law.check(t, nodeJSON{}, "give up", claimed, r.asks(actionCAS).Next)

	r = newRig(t, 0, nil)
	claimed = claim(r)
	r.answer(event{Applied: true})
	r.answer(event{Values: [][]byte{claimed, r.m.seen.infoBytes}})
	renewed := r.renewing().Next
	law.check(t, nodeJSON{}, "renew", claimed, renewed)
	r.answer(event{Applied: true})
	r.wall, r.mono = r.wall+1, r.mono+1
	r.step(event{Kind: eventLeave})
	if r.did(actionSeal) == nil {
		t.Fatalf("it does not seal: %+v", r.out)
	}
	r.step(event{Kind: eventSealed})
	law.check(t, nodeJSON{}, "release", renewed, r.asks(actionCAS).Next)
}
