package arch

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// indexLink is a link of docs/README.md to a file.
var indexLink = regexp.MustCompile(`\]\(([^)#:]+)`)

// TestLLMs: llms.txt is the index of the documentation, for coding assistants.
//
//	go test ./internal/arch -run TestLLMs -update
func TestLLMs(t *testing.T) {
	r := repository(t)
	_, pages, _ := strings.Cut(r.texts["docs/README.md"], "\n\n")
	want := "# Firn\n\n> Unique, time-ordered 64- and 128-bit IDs for distributed systems: a Go library, the server firn,\n" +
		"> and packages for Python, TypeScript and Java. Begin with [docs/assistants.md](docs/assistants.md).\n" +
		"> Store the number in a bigint; show typed text (order_…) internally and veiled text in public\n" +
		"> ([docs/forms.md](docs/forms.md)). Use layout uuidv7 where UUIDs are required.\n\n" +
		indexLink.ReplaceAllStringFunc(pages, func(link string) string {
			return "](" + path.Join("docs", strings.TrimPrefix(link, "]("))
		})
	if *update {
		write(t, "llms.txt", want)
	} else if r.texts["llms.txt"] != want {
		t.Error("llms.txt is not the index of docs/README.md: run go test ./internal/arch -run TestLLMs -update")
	}
}

// write writes a file of the repository.
func write(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path.Join("../..", name), []byte(text), 0o644))
}

var (
	link         = regexp.MustCompile(`\]\(([^()\s]*(?:\([^()]*\))?[^()\s]*)\)`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} +(.*?)#*$`)
	linkText     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	fenced       = regexp.MustCompile("(?s)```.*?```")
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	namedTest    = regexp.MustCompile("`(?:Test|Fuzz|Benchmark)[A-Z]\\w*`")
	unsaid       = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks checks that links of pages lead to existing files and headings, and
// that the tests that they name exist.
func TestLinks(t *testing.T) {
	pages, headings := make(map[string]string), make(map[string][]string)
	exists := make(map[string]bool)
	for name, text := range repository(t).texts {
		for _, m := range declaredTest.FindAllStringSubmatch(text, -1) {
			exists[m[1]] = true
		}
		for dir := name; dir != "."; dir = path.Dir(dir) {
			exists[dir] = true
		}
		if strings.HasSuffix(name, ".md") && !inTestdata(name) {
			pages[name] = fenced.ReplaceAllString(text, "")
			headings[name] = anchors(pages[name])
		}
	}
	for name, text := range pages {
		for _, test := range namedTest.FindAllString(text, -1) {
			if !exists[strings.Trim(test, "`")] {
				t.Errorf("%s: no test %s", name, test)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") { // external
				continue
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			all, isPage := headings[file]
			switch {
			case !exists[file]:
				t.Errorf("%s: link to %s, which does not exist", name, m[1])
			case anchor != "" && isPage && !slices.Contains(all, anchor):
				t.Errorf("%s: link to %s: %s has no heading for that anchor", name, m[1], file)
			}
		}
	}
}

// anchors returns the anchors of a page's headings, in GitHub's form.
func anchors(page string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		text := linkText.ReplaceAllString(strings.TrimSpace(m[1]), "$1")
		text = strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		again := text
		for n := 1; slices.Contains(all, again); n++ {
			again = fmt.Sprintf("%s-%d", text, n)
		}
		all = append(all, again)
	}
	return all
}
