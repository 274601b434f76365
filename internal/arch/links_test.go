package arch

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLinks checks that links of pages lead to existing files and headings.
func TestLinks(t *testing.T) { report(t, checkLinks(repository(t))) }

var (
	link     = regexp.MustCompile(`\]\(([^()\s]*(?:\([^()]*\))?[^()\s]*)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?)#*$`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	fenced   = regexp.MustCompile("(?s)```.*?```")
	unsaid   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// checkLinks finds broken links between pages.
func checkLinks(r *repo) (findings []string) {
	pages, headings := make(map[string]string), make(map[string][]string)
	exists := make(map[string]bool)
	for _, f := range r.texts {
		for name := f.name; name != "."; name = path.Dir(name) {
			exists[name] = true
		}
		if strings.HasSuffix(f.name, ".md") && !inTestdata(f.name) {
			pages[f.name] = fenced.ReplaceAllString(f.text, "")
			headings[f.name] = anchors(pages[f.name])
		}
	}
	for name, text := range pages {
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
				findings = append(findings, fmt.Sprintf("%s: link to %s, which does not exist", name, m[1]))
			case anchor != "" && isPage && !slices.Contains(all, anchor):
				findings = append(findings, fmt.Sprintf("%s: link to %s: %s has no heading for that anchor", name, m[1], file))
			}
		}
	}
	slices.Sort(findings)
	return findings
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
