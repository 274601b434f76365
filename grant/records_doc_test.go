package grant

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/must"
)

const (
	protocolPage = "../docs/protocol.md"
	runbooksPage = "../docs/runbooks.md"
)

func readPage(t *testing.T, name string) string {
	t.Helper()
	page := must.Get(os.ReadFile(name))(t)
	return string(page)
}

// docs/protocol.md is normative. Its records are those that this package writes
// and reads, its constants are the code's, and the stories and mistakes that
// it names exist.
func TestProtocolPage(t *testing.T) {
	page := readPage(t, protocolPage)
	t.Run("records", func(t *testing.T) { checkRecords(t, page) })
	t.Run("constants", func(t *testing.T) { checkConstants(t, page) })
	t.Run("names", func(t *testing.T) { checkNames(t, page) })
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
			r, err = decodeConfig(key, []byte(text))
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
				t.Errorf("%s is not the key of a number of the default layout (%v)", key, err)
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
		"version": fmt.Sprint(version), "picks": fmt.Sprint(picks), "pickGrowth": fmt.Sprint(pickGrowth), "pickRounds": fmt.Sprint(pickRounds), "oldKept": fmt.Sprint(oldKept), "releaseTry": fmt.Sprint(releaseTry), "checkTry": fmt.Sprint(checkTry), "refusalsMost": fmt.Sprint(refusalsMost),
		"behindMost": fmt.Sprint(behindMost, " ms"), "aheadMost": fmt.Sprint(aheadMost, " ms"), "configEvery": fmt.Sprint(configEvery, " ms"), "fenceLeast": fmt.Sprint(fenceLeast.Milliseconds(), " ms"), "settleTry": fmt.Sprint(settleTry),
		"jumpMost": fmt.Sprint(jumpMost, " ms"), "skew": fmt.Sprint(skew.Milliseconds(), " ms"),
		"backoffMin": fmt.Sprint(backoffMin, " ms"), "backoffMax": fmt.Sprint(backoffMax, " ms"), "listEvery": fmt.Sprint(listEvery, " ms"),
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
	m := newMachine(Member{random: func() uint64 { return 0 }})
	m.sequencer.Config.Window = time.Minute
	early := m.window() - m.newMargin()
	m.options.random = func() uint64 { return 2 * 60_000 / 15 }
	late := m.window() - m.newMargin()
	if early != 60_000/3-60_000/15 || late != 60_000/3+60_000/15 {
		t.Errorf("a window of 60 s is renewed when %d to %d ms are used, and the page has another formula", early, late)
	}
}

// checkNames looks up what the argument refers to. TestLinks, in internal/arch,
// looks up its tests.
func checkNames(t *testing.T, page string) {
	for _, m := range regexp.MustCompile("`TestStories`[ \n]\\(([^)]*)\\)").FindAllStringSubmatch(page, -1) {
		for story := range strings.SplitSeq(m[1], ", ") {
			if _, err := os.Stat("testdata/stories/" + story + ".txt"); err != nil {
				t.Errorf("the page names a story: %v", err)
			}
		}
	}

	model := readPage(t, "../docs/protocol/grants.pml")
	for _, name := range regexp.MustCompile(`\bM_[A-Z]+\b|\b(?:ANYTAKE|LOOK|WAIT|DESTROY|RESTORE|REVCAS|CLONE|BOUND|ORDER)\b`).FindAllString(page, -1) {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(model) {
			t.Errorf("the page names %s, and the model has none", name)
		}
	}

	_, argument, _ := strings.Cut(page, "\n## Why IDs are unique\n")
	_, clauses, _ := strings.Cut(argument, "\n### Mistakes, clause by clause\n")
	clauses, _, _ = strings.Cut(clauses, "\n## ")
	for _, name := range regexp.MustCompile(`\bM_[A-Z]+\b`).FindAllString(model, -1) {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(clauses) {
			t.Errorf("no clause is said to be broken by %s of the model", name)
		}
	}
	script := readPage(t, "../scripts/model.sh")
	for _, m := range regexp.MustCompile("`([a-z]+(?:-[a-z]+)*)`").FindAllStringSubmatch(clauses, -1) {
		if !strings.Contains(script, "\t"+m[1]+" | ") && !slices.Contains([]string{"from", "spoiled"}, m[1]) {
			t.Errorf("the clauses name the configuration %s of the model, and there is none", m[1])
		}
	}
}

// docs/runbooks.md quotes messages of the log.
func TestLogLines(t *testing.T) {
	page, source := readPage(t, "../docs/runbooks.md"), readPage(t, "keeper.go")+readPage(t, "outage.go")
	_, table, _ := strings.Cut(page, "\n## Log lines\n")
	table, _, _ = strings.Cut(table, "\n#")
	rows := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| (\\w+) \\|").FindAllStringSubmatch(table, -1)
	calls := regexp.MustCompile(`log\.(Error|Warn)\("([^"]*)"`).FindAllStringSubmatch(source, -1)
	said := make(map[string]string)
	for _, m := range rows {
		said[m[1]] = m[2]
	}
	for _, a := range alarms[1:] {
		calls = append(calls, []string{"", a.level.String(), a.message})
	}
	for _, m := range calls {
		if said[m[2]] != strings.ToUpper(m[1]) {
			t.Errorf("the log has %q as %s, and the page says %q", m[2], m[1], said[m[2]])
		}
		delete(said, m[2])
	}
	if len(said) > 0 || len(calls) == 0 {
		t.Errorf("the page has log lines that there are not: %v", said)
	}
}

// The messages that docs/runbooks.md explains exist in this package.
func TestOperationsMessages(t *testing.T) {
	files := must.Get(filepath.Glob("*.go"))(t)
	var source strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			source.WriteString(readPage(t, file))
		}
	}
	_, table, _ := strings.Cut(readPage(t, runbooksPage), "\n| message | cause | what to do |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	checked := 0
	for row := range strings.Lines(table) {
		for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			for part := range strings.SplitSeq(m[1], "…") {
				if part = strings.TrimSpace(part); strings.Contains(part, " ") {
					checked++
					if !strings.Contains(source.String(), part) {
						t.Errorf("the page explains %q, which is not a message of this package", part)
					}
				}
			}
		}
	}
	if checked < 6 {
		t.Errorf("the page explains %d messages, want at least 6", checked)
	}
}
