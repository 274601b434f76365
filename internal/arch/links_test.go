package arch

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestLinks holds the links of pages to the files and headings that they name.
func TestLinks(t *testing.T) { report(t, checkLinks(repository(t))) }

var (
	link     = regexp.MustCompile(`\]\(([^()\s]*(?:\([^()]*\))?[^()\s]*)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?)#*$`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unsaid   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// checkLinks finds links between pages that lead nowhere.
func checkLinks(r *repo) (findings []string) {
	pages := make(map[string]string)
	for _, f := range r.texts {
		if strings.HasSuffix(f.name, ".md") && !inTestdata(f.name) {
			pages[f.name] = fenced.ReplaceAllString(f.text, "")
		}
	}
	for name, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") { // of another site
				continue
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			page, isPage := pages[file]
			switch {
			case !slices.ContainsFunc(r.texts, func(f textFile) bool { return f.name == file || strings.HasPrefix(f.name, file+"/") }):
				findings = append(findings, fmt.Sprintf("%s: link to %s, which does not exist", name, m[1]))
			case anchor != "" && isPage && !slices.Contains(anchors(page), anchor):
				findings = append(findings, fmt.Sprintf("%s: link to %s: %s has no heading for that anchor", name, m[1], file))
			}
		}
	}
	slices.Sort(findings)
	return findings
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
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

// TestLinksBite shows that checkLinks finds each fault.
func TestLinksBite(t *testing.T) {
	r, err := load(fstest.MapFS{
		"a.md":      {Data: []byte("[b](docs/b.md#the-word) [c](docs/c.md) [](docs) [](#none) [](docs/b.md#x) [](https://example.org/#x)\n```\n[](no)\n```\n")},
		"docs/b.md": {Data: []byte("# The `word`!\n[a](../a.md)\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(checkLinks(r), "\n")
	want := "a.md: link to #none: a.md has no heading for that anchor\n" +
		"a.md: link to docs/b.md#x: docs/b.md has no heading for that anchor\n" +
		"a.md: link to docs/c.md, which does not exist"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
