// Command voice finds phrases that read as translated, and lines that are too
// long, in the texts of a repository: Go comments and strings, Markdown,
// templates, scripts and what else is listed by git and holds prose. It prints
// one line for each finding, and exits with status 1 if there are any.
//
//	voice [-root DIR] [PATH…]
//
// With paths, it checks only files whose names begin with one of them. A phrase
// is found also where a paragraph breaks it across two lines. Words in
// backquotes are not checked, so that texts can quote messages and names.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A finding is a phrase or a line to be rewritten.
type finding struct {
	path string
	line int
	text string
}

// skipped reports whether path holds no prose of this repository: recorded data,
// generated code, and the phrases themselves.
func skipped(path string) bool {
	return strings.Contains(path, "testdata/") && !strings.HasSuffix(path, ".txt") ||
		strings.HasSuffix(path, ".pb.go") || strings.HasPrefix(path, "tools/voice/")
}

// check returns the findings of one file, in the order of its lines.
func check(path string, src []byte) (found []finding) {
	switch ext := filepath.Ext(path); {
	case ext == ".go":
		found = checkGo(path, src)
	case ext == ".md":
		found = checkMarkdown(path, string(src))
	case slices.Contains([]string{".tmpl", ".html", ".js", ".proto", ".yaml", ".sh", ".txt"}, ext), filepath.Base(path) == "Makefile":
		found = checkText(path, string(src))
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return found
}

// run checks the files of the repository in root that begin with one of paths.
func run(root string, paths []string) ([]finding, error) {
	list := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	var all []finding
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		wanted := len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(path, p) })
		if !wanted || skipped(path) {
			continue
		}
		src, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		if err != nil {
			return nil, err
		}
		all = append(all, check(path, src)...)
	}
	return all, nil
}

func main() {
	root := flag.String("root", ".", "check the repository in this directory")
	flag.Parse()
	findings, err := run(*root, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "voice:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Printf("%s:%d: %s\n", f.path, f.line, f.text)
	}
	if len(findings) > 0 {
		fmt.Printf("voice: %d findings\n", len(findings))
		os.Exit(1)
	}
}
