package grant

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// docs/protocol.md is normative. Its records are those that this package writes
// and reads, and its constants are the code's.
func TestProtocolPage(t *testing.T) {
	page := string(must.Get(os.ReadFile("../docs/protocol.md"))(t))
	t.Run("records", func(t *testing.T) { checkRecords(t, page) })
	t.Run("constants", func(t *testing.T) { checkConstants(t, page) })
}

func checkRecords(t *testing.T, page string) {
	seen := make(map[string]int)
	states := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^```json (\\S+) (\\S+)\n(.*)\n```$").FindAllStringSubmatch(page, -1) {
		kind, key, text := m[1], m[2], m[3]
		seen[kind]++
		name := strings.Split(key, "/")[1]
		var err, want error
		var again []byte
		switch kind {
		case "config":
			var r Info
			r, err = decodeInfo(key, []byte(text))
			again = r.encode()
			if key != configKey(name) {
				t.Errorf("%s is not the key of a configuration", key)
			}
		case "node":
			var r nodeRecord
			r, err = decodeNode(key, []byte(text))
			again = r.encode()
			states[r.State] = true
		case "damaged":
			_, err = decodeNode(key, []byte(text))
			want = ErrDamaged
		case "newer":
			_, err = decodeNode(key, []byte(text))
			want = ErrNewerVersion
		default:
			t.Errorf("a record of kind %q", kind)
		}
		switch {
		case !errors.Is(err, want):
			t.Errorf("%s %s: reading it = %v, want %v", kind, text, err, want)
		case want == nil && string(again) != text:
			t.Errorf("%s: written as\n%s\nand the page has\n%s", key, again, text)
		}
		if kind != "config" {
			if node, err := nodeOf(name, key); err != nil || nodeKey(name, node, testConfig("default", time.Minute).Layout.MaxNode()) != key {
				t.Errorf("%s is not the key of a node ID of the default layout (%v)", key, err)
			}
		}
	}
	for _, kind := range []string{"config", "node", "damaged", "newer"} {
		if seen[kind] == 0 {
			t.Errorf("the page has no record of kind %q", kind)
		}
	}
	for _, state := range []string{nodeHeld, nodeClosing, nodeFree} {
		if !states[state] {
			t.Errorf("the page has no record that is %s", state)
		}
	}
	for s := Attached; s <= Purged; s++ {
		if !strings.Contains(page, fmt.Sprintf("\n| `%v` |", s)) {
			t.Errorf("the page says nothing of the state %v", s)
		}
	}
}

func checkConstants(t *testing.T, page string) {
	want := map[string]string{
		"version": fmt.Sprint(version), "pickSize": fmt.Sprint(pickSize), "pickGrowth": fmt.Sprint(pickGrowth), "pickRounds": fmt.Sprint(pickRounds), "maxEarlier": fmt.Sprint(maxEarlier), "maxReleaseTries": fmt.Sprint(maxReleaseTries), "recordOnlyAfter": fmt.Sprint(recordOnlyAfter), "maxRefusals": fmt.Sprint(maxRefusals),
		"maxBehind": fmt.Sprint(maxBehind, " ms"), "maxLead": fmt.Sprint(maxLead, " ms"), "configEvery": fmt.Sprint(configEvery, " ms"), "minFence": fmt.Sprint(minFence.Milliseconds(), " ms"), "maxUnknownWrites": fmt.Sprint(maxUnknownWrites),
		"maxJump": fmt.Sprint(maxJump, " ms"), "skew": fmt.Sprint(MaxSkew.Milliseconds(), " ms"),
		"minBackoff": fmt.Sprint(minBackoff, " ms"), "maxBackoff": fmt.Sprint(maxBackoff, " ms"), "listEvery": fmt.Sprint(listEvery, " ms"),
		"maxTime": fmt.Sprint(maxTime, " ms"), "maxWindow": fmt.Sprint(maxWindow.Milliseconds(), " ms"),
		"defaultWindow": fmt.Sprint(defaultWindow.Milliseconds(), " ms"),
		"maxName":       fmt.Sprint(maxName), "maxKey": fmt.Sprint(maxKey), "maxValue": fmt.Sprint(maxValue),
	}
	_, table, _ := strings.Cut(page, "\n## Constants\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(table, -1) {
		if want[m[1]] != m[2] {
			t.Errorf("%s is %q in the page, want %q", m[1], m[2], want[m[1]])
		}
		delete(want, m[1])
	}
	if len(want) > 0 {
		t.Errorf("the page lacks constants: %v", want)
	}
	if last := time.UnixMilli(maxTime).UTC().Format(time.DateOnly); !strings.Contains(table, last) {
		t.Errorf("the page does not say that times end on %s", last)
	}

	// How much of a window is used before it is renewed.
	m := newMachine(settings{random: func() uint64 { return 0 }})
	m.seen.info.Config.Window = time.Minute
	early := m.window() - m.newMargin(m.window())
	m.settings.random = func() uint64 { return 2 * 60_000 / 15 }
	late := m.window() - m.newMargin(m.window())
	if early != 60_000/3-60_000/15 || late != 60_000/3+60_000/15 {
		t.Errorf("a window of 60 s is renewed when %d to %d ms are used, and the page has another formula", early, late)
	}
}
