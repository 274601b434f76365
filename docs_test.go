package firn

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

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
