package arch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPicture compares the picture of packages in ARCHITECTURE.md with the
// code.
func TestPicture(t *testing.T) {
	r := repository(t)
	i := slices.IndexFunc(r.texts, func(f textFile) bool { return f.name == "ARCHITECTURE.md" })
	if i < 0 {
		t.Fatal("ARCHITECTURE.md is gone")
	}
	report(t, checkPicture(r, r.texts[i].text))
}

var (
	pictureBlock = regexp.MustCompile("(?s)```packages\n(.*?)```")
	forTests     = regexp.MustCompile(`(?s)\nTests alone use (.*?)\n\n`)
	quotedWord   = regexp.MustCompile("`([^`]+)`")
)

// checkPicture finds errors in a picture of packages: each line of it names
// packages, which import only those of lower lines. Packages that only tests
// use are named below it.
func checkPicture(r *repo, page string) (findings []string) {
	find := func(format string, args ...any) {
		findings = append(findings, "ARCHITECTURE.md: "+fmt.Sprintf(format, args...))
	}
	exists := func(dir string) bool {
		return slices.ContainsFunc(r.packages, func(p *pkg) bool { return p.dir == dir })
	}
	level := make(map[string]int)
	block := pictureBlock.FindStringSubmatch(page)
	if block == nil {
		return []string{"ARCHITECTURE.md has no picture of packages"}
	}
	for n, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
		for k, dir := range strings.Fields(line) {
			if !exists(dir) {
				if k == 0 || strings.Contains(dir, "/") {
					find("the picture names %s, which is not a package", dir)
				}
				break // the description of the packages
			}
			if _, again := level[dir]; again {
				find("the picture names %s twice", dir)
			}
			level[dir] = n + 1
		}
	}
	if block := forTests.FindStringSubmatch(page); block != nil {
		for _, m := range quotedWord.FindAllStringSubmatch(block[1], -1) {
			if !exists(m[1]) {
				find("%s is not a package", m[1])
			}
			level[m[1]] = 0
		}
	}
	for _, p := range r.packages {
		if p.module.dir == "bench" || strings.HasPrefix(p.module.dir, "tools") {
			continue
		}
		own, ok := level[p.dir]
		if !ok {
			find("package %s is not in the picture", p.dir)
			continue
		}
		for _, f := range p.files {
			if f.test || own == 0 {
				continue
			}
			for imp, at := range f.imports() {
				if dir, _, ok := r.dirOf(imp); ok && level[dir] <= own {
					find("%s: %s imports %s, which does not stand below it", at, p.dir, dir)
				}
			}
		}
	}
	for _, m := range quotedWord.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		if word := m[1]; pathLike.MatchString(word) && !slices.ContainsFunc(r.texts, func(f textFile) bool { return names(word, f.name) }) {
			find("there is no %s", word)
		}
	}
	findings = append(findings, checkMentions(r, fenced.ReplaceAllString(page, ""))...)
	slices.Sort(findings)
	return findings
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)(…?)`")
	nameIn   = regexp.MustCompile("`([A-Za-z0-9_]+)`(?:[^`.]*?),? in `([^`]+\\.go)`")
	fileIn   = regexp.MustCompile("`([a-z0-9_]+\\.go)`(?: \\([^)]*\\))?,? in `([a-z0-9/]+)`")
)

// checkMentions finds tests that a page names and that do not exist, and names
// and files that are not in the file or directory that the page names.
func checkMentions(r *repo, page string) (findings []string) {
	find := func(format string, args ...any) {
		findings = append(findings, "ARCHITECTURE.md: "+fmt.Sprintf(format, args...))
	}
	page = strings.Join(strings.Fields(page), " ")
	contains := func(files func(name string) bool, what *regexp.Regexp) bool {
		return slices.ContainsFunc(r.texts, func(f textFile) bool { return files(f.name) && what.MatchString(f.text) })
	}
	for _, m := range testName.FindAllStringSubmatch(page, -1) {
		end := `\(`
		if m[2] != "" {
			end = ""
		}
		if !contains(func(name string) bool { return strings.HasSuffix(name, "_test.go") }, regexp.MustCompile(`(?m)^func `+m[1]+end)) {
			find("there is no test %s%s", m[1], m[2])
		}
	}
	for _, m := range nameIn.FindAllStringSubmatch(page, -1) {
		if !contains(func(name string) bool { return names(m[2], name) }, regexp.MustCompile(`\b`+m[1]+`\b`)) {
			find("there is no %s in %s", m[1], m[2])
		}
	}
	for _, m := range fileIn.FindAllStringSubmatch(page, -1) {
		if !slices.ContainsFunc(r.texts, func(f textFile) bool { return names(m[2]+"/"+m[1], f.name) }) {
			find("there is no %s in %s", m[1], m[2])
		}
	}
	return findings
}

var fenced = regexp.MustCompile("(?s)```.*?```")

// pathLike matches words of a page that denote a file or a directory.
var pathLike = regexp.MustCompile(`^([a-z0-9_.-]+/)*[a-z0-9_*-]+(\.(go|md|txt|json|pml|sh)|/)$|^[a-z0-9]+(/[a-z0-9]+)+$`)

// names reports whether a word denotes a file, or a directory that contains it,
// by its path or by the end of its path.
func names(word, file string) bool {
	if !strings.Contains(word, ".") {
		return strings.Contains("/"+file, "/"+strings.TrimSuffix(word, "/")+"/")
	}
	prefix, suffix, _ := strings.Cut("/"+word, "*")
	i := strings.LastIndex("/"+file, prefix)
	return i >= 0 && strings.HasSuffix(("/" + file)[i+len(prefix):], suffix) && (strings.Contains(word, "*") || strings.HasSuffix("/"+file, "/"+word))
}

// TestPictureBites shows that checkPicture finds each fault.
func TestPictureBites(t *testing.T) {
	r := tree(t, map[string]string{
		"m.go":          "package m\n\nimport _ \"example.org/m/leaf\"\n",
		"leaf/leaf.go":  "package leaf\n",
		"kit/kit.go":    "package kit\n",
		"up/up_test.go": "package up\n\nfunc TestUpwards() {}\n",
		"up/up.go":      "package up\n\nimport (\n\t_ \"example.org/m\"\n\t_ \"example.org/m/kit\"\n)\n",
	})
	const tests = "\nTests alone use `kit`, `internal/leaf`, `middle`, `middletest`, `server/cmd/tool` and `server/gen`.\n\n"
	for _, test := range []struct{ page, want string }{
		{"", "no picture"},
		{"```packages\nup  leaf\n.  the library\n```\n" + tests, ". imports leaf"},
		{"```packages\nup\n.  the library\nleaf\n```\n" + tests, "up imports kit"},
		{"```packages\nup\n.\nleaf  gone/away\n```\n" + tests, "gone/away, which is not a package"},
		{"```packages\nup  up\n.\nleaf\n```\n" + tests, "up twice"},
		{"```packages\n.\nleaf\n```\n" + tests, "package up is not in the picture"},
		{"```packages\nup\n.\nleaf\n```\n" + tests + "See `m.go`, `gone.go` and `away/from`.", "there is no away/from\nARCHITECTURE.md: there is no gone.go"},
		{"```packages\nup\n.\nleaf\n```\n" + tests + "`TestX`, `TestUp…` and `FuzzY`", "there is no test FuzzY\nARCHITECTURE.md: there is no test TestX"},
		{"```packages\nup\n.\nleaf\n```\n" + tests + "`kit` and `gone` in\n`up/up.go`; `up.go` and\n`leaf.go` (a leaf) in `up`.", "there is no gone in up/up.go\nARCHITECTURE.md: there is no leaf.go in up"},
		{"```packages\nup\n.\nleaf\n```\n\nTests alone use `kit` and `other`.\n\n", "other is not a package"},
	} {
		if got := strings.Join(checkPicture(r, test.page), "\n"); !strings.Contains(got, test.want) {
			t.Errorf("%q: %q, want %q", test.page, got, test.want)
		}
	}
	right := "```packages\nup\n.  the library\nkit\nleaf  the last\n```\n" + strings.Replace(tests, "`kit`, ", "", 1)
	if got := checkPicture(r, right); got != nil {
		t.Errorf("of what is right: %q", got)
	}
}
