package firn

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// The Go code of the README and the pages is that of examples, which compile.
func TestPageCode(t *testing.T) {
	var examples string
	for _, file := range []string{"example_test.go", "s3store/example_test.go", "examples/webshop/main.go",
		"examples/go/directory/main.go", "examples/go/postgres/main.go", "examples/go/etcd/main.go",
		"examples/go/kubernetes/main.go", "examples/gorm/order.go"} {
		examples += readPage(t, file)
	}
	indent := regexp.MustCompile(`(?m)^\t+`)
	examples = indent.ReplaceAllString(examples, "")
	pages := must.Get(filepath.Glob("docs/*.md"))(t)
	found := 0
	for _, page := range append(pages, "README.md") {
		for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readPage(t, page), -1) {
			found++
			if code := indent.ReplaceAllString(m[1], ""); !strings.Contains(examples, code) {
				t.Errorf("%s: no example has this code:\n%s", page, m[1])
			}
		}
	}
	if found < 4 {
		t.Errorf("%d blocks of Go code, want those of the README and generator.md", found)
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(name))(t))
}

// docs/layouts.md is normative: each preset's row contains its bits, its unit
// and its epoch, and there are no other rows. A change here changes the meaning
// of stored IDs.
func TestPresets(t *testing.T) {
	said := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\| `(bits=[^`]*)` \\|$").FindAllStringSubmatch(readPage(t, "docs/layouts.md"), -1) {
		said[m[1]] = m[2]
	}
	for p := range Presets() {
		want := fmt.Sprintf("bits=%s,unit=%v,epoch=%s", p.Layout.Definition(), p.Layout.Unit(), p.Layout.epochText())
		if k := p.Layout.even; k > 0 {
			want += fmt.Sprint(",even=", k)
		}
		if said[p.Name] != want {
			t.Errorf("docs/layouts.md: %s is %q, want %q", p.Name, said[p.Name], want)
		}
		if p.Layout.Preset() != p.Name || p.Layout.String() != p.Name {
			t.Errorf("%s: Preset is %q, String %q", p.Name, p.Layout.Preset(), p.Layout)
		}
		delete(said, p.Name)
	}
	if len(said) > 0 {
		t.Errorf("docs/layouts.md describes what is no preset: %v", said)
	}
}
