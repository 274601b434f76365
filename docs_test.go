package firn

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"
)

// The README's IDs are what its words say: of node 0, as make run makes them,
// and of the node of its example.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	nodes := make(map[uint64]bool)
	for _, text := range regexp.MustCompile(`\b\d{18}\b`).FindAllString(string(page), -1) {
		id, err := ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Default().Decompose(id)
		if err != nil || p.Time.Before(noon) || p.Time.After(noon.Add(time.Second)) {
			t.Errorf("README.md: %s is of %v, %v, want a moment after %v", text, p, err, noon)
		}
		nodes[p.Node] = true
	}
	if len(nodes) != 2 || !nodes[0] || !nodes[7] {
		t.Errorf("README.md: IDs of nodes %v, want of 0 and 7", nodes)
	}
}

// docs/layouts.md is normative: each preset's section says its bits, its unit
// and its epoch, and there is no section for anything else.
func TestLayoutsPage(t *testing.T) {
	page, err := os.ReadFile("docs/layouts.md")
	if err != nil {
		t.Fatal(err)
	}
	said := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^### (\\S+)\n\n`(bits=[^`]*)`$").FindAllSubmatch(page, -1) {
		said[string(m[1])] = string(m[2])
	}
	for p := range Presets() {
		want := fmt.Sprintf("bits=%s,unit=%v,epoch=%s", p.Layout.Fields(), p.Layout.Unit(), p.Layout.epochText())
		if said[p.Name] != want {
			t.Errorf("docs/layouts.md: %s is %q, want %q", p.Name, said[p.Name], want)
		}
		delete(said, p.Name)
	}
	if len(said) > 0 {
		t.Errorf("docs/layouts.md describes what is no preset: %v", said)
	}
}
