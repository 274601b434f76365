// Voice checks the words of a repository: phrases that read as translated, and
// lines that are too long, in Go comments and strings, in templates and in
// Markdown. It prints one line for each finding and exits with status 1 if there
// is one.
//
//	voice [-root DIR]
//
// A finding that is right as it stands is quoted from elsewhere or names a thing;
// put such words in backquotes in Markdown and comments.
package main

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A rule is a phrase and what to write instead.
type rule struct {
	phrase *regexp.Regexp
	write  string
}

func phrase(pattern, write string) rule {
	return rule{regexp.MustCompile(`(?i)(?:^|[^\w-])(` + pattern + `)(?:$|[^\w-])`), write}
}

// rules are in the order of how often they were broken.
var rules = []rule{
	phrase(`(?:is|are|was|were|be) none`, `"no X found", "is not an X"`),
	phrase(`(?:is|are|was|were) no (?:[a-z]+ )?[a-z]+(?: of)?`, `"is not an X", "no X found"`),
	phrase(`whoever|who asks`, `"the caller", "anyone who can …"`),
	phrase(`nobody|somebody`, `"no client", "another process"`),
	phrase(`or else|(?:can|would|may|might|could) else`, `"otherwise"`),
	phrase(`else,|else:`, `"otherwise"`),
	phrase(`(?:is|are|be) (?:to be )?had|(?:can|may|could) be had`, `"is available", "can be acquired"`),
	phrase(`(?:is|are|was|were) told|says so|say so`, `"reports", "logs", "returns"`),
	phrase(`goes on|go on|went on|going on`, `"continues", "keeps"`),
	phrase(`(?:of|that|those|ones?|as) before[.,;:)]`, `"previous"`),
	phrase(`(?:is|are|was) over`, `"has expired", "has ended"`),
	phrase(`(?:is|are|was|were) away`, `"is unreachable", "is down"`),
	phrase(`at the (?:least|most)|(?:\w+), at most[.,;]`, `"at least N", "up to N" before the number`),
	phrase(`as it (?:would be|is|was)[.,;]`, `"unchanged", "with the same settings"`),
	phrase(`it (?:may|can|might) be that`, `"may", "can"`),
	phrase(`(?:that|which) is (?:said|meant|spoken|made|asked)`, `the noun and an active verb`),
	phrase(`and (?:this|that|these|those) (?:is|are) (?:none|not|no|one)`, `a sentence of its own`),
	phrase(`node numbers?`, `"node ID"`),
}

// longest is the longest line of Markdown and of a comment, in columns.
const longestMarkdown, longestComment = 100, 80

// A checker counts and prints findings.
type checker struct{ findings int }

func (c *checker) report(path string, line int, text string) {
	c.findings++
	fmt.Printf("%s:%d: %s\n", path, line, text)
}

var quoted = regexp.MustCompile("`[^`]*`")

// words checks one line or string.
func (c *checker) words(path string, line int, text string) {
	text = quoted.ReplaceAllString(text, "``")
	for _, r := range rules {
		if m := r.phrase.FindStringSubmatch(text); m != nil {
			c.report(path, line, fmt.Sprintf("%q: write %s", m[1], r.write))
		}
	}
}

// goFile checks the comments of a Go file, and its strings unless it is a test.
func (c *checker) goFile(path string, src []byte) {
	fset := token.NewFileSet()
	file := fset.AddFile(path, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		at := file.Position(pos)
		switch tok {
		case token.EOF:
			return
		case token.COMMENT:
			for i, text := range strings.Split(lit, "\n") {
				if strings.HasPrefix(text, "//go:") {
					continue
				}
				c.words(path, at.Line+i, text)
				if n := at.Column - 1 + utf8.RuneCountInString(text); n > longestComment && strings.Contains(strings.TrimLeft(text, "/\t "), " ") && at.Column < 40 {
					c.report(path, at.Line+i, fmt.Sprintf("a comment of %d columns: wrap at %d", n, longestComment))
				}
			}
		case token.STRING:
			if text, err := strconv.Unquote(lit); err == nil && !strings.HasSuffix(path, "_test.go") && strings.Contains(text, " ") {
				for i, text := range strings.Split(text, "\n") {
					c.words(path, at.Line+i, text)
				}
			}
		}
	}
}

// markdown checks a page. Code is not prose, and a table cannot be wrapped.
func (c *checker) markdown(path string, src string) {
	code := false
	for i, text := range strings.Split(src, "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			code = !code
			continue
		}
		if code {
			continue
		}
		c.words(path, i+1, text)
		if n := utf8.RuneCountInString(text); n > longestMarkdown && !strings.HasPrefix(text, "|") && !strings.Contains(text, "](") {
			c.report(path, i+1, fmt.Sprintf("a line of %d columns: wrap at %d", n, longestMarkdown))
		}
	}
}

func run(root string) (findings int, err error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return 0, fmt.Errorf("list the files of %s: %w", root, err)
	}
	var c checker
	for _, path := range strings.Fields(string(out)) {
		src, err := os.ReadFile(filepath.Join(root, path))
		switch {
		case os.IsNotExist(err) || strings.Contains(path, "testdata/") || strings.HasSuffix(path, ".pb.go") || strings.HasPrefix(path, "tools/voice/"):
		case err != nil:
			return 0, err
		case strings.HasSuffix(path, ".go"):
			c.goFile(path, src)
		case strings.HasSuffix(path, ".md"):
			c.markdown(path, string(src))
		case strings.HasSuffix(path, ".tmpl"), strings.HasSuffix(path, ".html"), strings.HasSuffix(path, ".proto"), strings.HasSuffix(path, ".yaml"):
			for i, text := range strings.Split(string(src), "\n") {
				c.words(path, i+1, text)
			}
		}
	}
	return c.findings, nil
}

func main() {
	root := flag.String("root", ".", "directory of the repository")
	flag.Parse()
	n, err := run(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "voice:", err)
		os.Exit(2)
	}
	if n > 0 {
		fmt.Printf("voice: %d findings\n", n)
		os.Exit(1)
	}
}
