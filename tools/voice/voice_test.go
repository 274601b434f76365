package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each text has the findings that its want lists, as line:phrase.
var texts = []struct{ name, path, src, want string }{
	{"a comment", "a.go", "package a\n\n// Nobody waits.\nvar x int\n", `3:"Nobody"`},
	{"broken across lines of a comment", "a.go", "package a\n\n// If the store is\n// away, wait.\nvar x int\n", `3:"is away"`},
	{"the second of three lines", "a.go", "// Package a does\n// what it is told.\n// Always.\npackage a\n", `2:"is told"`},
	{"not across an empty line", "a.go", "// Package a is\n//\n// away, for once.\npackage a\n", ""},
	{"a comment after code", "a.go", "package a\n\nvar x int // is over.\n", `3:"is over."`},
	{"a string", "a.go", "package a\n\nvar x = \"that is no ID\"\n", `3:"that is no ID"`},
	{"a string in a test", "a_test.go", "package a\n\nvar x = \"that is no ID\"\n", ""},
	{"strings that are added", "a.go", "package a\n\nvar x = \"the store is \" +\n\t\"away: \" + y + \" goes on\"\n", `3:"is away" 4:"goes on"`},
	{"inside a sum", "a.go", "package a\n\nvar x = \"a\" + f(\"who asks\")\n", `3:"who asks"`},
	{"lines of a raw string", "a.go", "package a\n\nvar x = []s{{help: `one\ntwo is\nover, three`}}\n", `4:"is over,"`},
	{"lines of a quoted string", "a.go", "package a\n\nvar x = \"one\\ntwo is over, three\"\n", `3:"is over,"`},
	{"a wide comment", "a.go", "package a\n\n// " + strings.Repeat("word ", 20) + "\nvar x int\n", "3:103"},
	{"code is not wrapped", "a.go", "package a\n\n//\t" + strings.Repeat("word ", 20) + "\nvar x int\n", ""},
	{"output is not wrapped", "a_test.go", "package a\n\n// Output: " + strings.Repeat("word ", 20) + "\n", ""},
	{"a paragraph of Markdown", "a.md", "# A\n\nThe lease can be\nhad, or it is\nnone.\n", `3:"can be had" 4:"is none"`},
	{"items of a list", "a.md", "- this is\n- none\n", ""},
	{"quoted", "a.md", "It printed `nobody\nwaits` and ended.\n", ""},
	{"code", "a.md", "```\nnobody\n```\nsomebody\n", `4:"somebody"`},
	{"a wide line", "a.md", strings.Repeat("word ", 30) + "\n|" + strings.Repeat("word ", 30) + "\n", "1:150"},
	{"a long address", "a.md", "See https://example.org/" + strings.Repeat("x", 90) + "\n", ""},
	{"a template", "a.html", "<p>{{if .X}}The window is\nover.{{end}}\n", `1:"is over."`},
	{"a script", "a.sh", "# Ends when it is\n# over, always.\necho 'go on'\n", `1:"is over," 3:"go on"`},
	{"a Makefile", "Makefile", "# whoever\n", `1:"whoever"`},
	{"not prose", "a.json", "{\"nobody\": 1}\n", ""},
	{"idioms", "a.md", "There is no store. It is no longer than that, is no more.\nSomething else: it works as before. The limit is over 5.\n" +
		"IDs increase while everything is going on at once.\n", ""},
}

func TestTexts(t *testing.T) {
	for _, x := range texts {
		var got []string
		for _, f := range check(x.path, []byte(x.src)) {
			text, _, _ := strings.Cut(f.text, ": write")
			text, _, _ = strings.Cut(text, " columns")
			got = append(got, fmt.Sprintf("%d:%s", f.line, text))
		}
		if got := strings.Join(got, " "); got != x.want {
			t.Errorf("%s: got %s, want %s", x.name, got, x.want)
		}
	}
}

// TestRun checks that new files count, and that data and ignored files do not.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	for path, text := range map[string]string{
		".gitignore": "ignored.md\n", "ignored.md": "nobody\n", "a.md": "nobody\n", "b/b.md": "nobody\n",
		"testdata/rows.md": "nobody\n", "testdata/story.txt": "# nobody\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for paths, want := range map[string]string{"": "a.md b/b.md testdata/story.txt", "b/": "b/b.md"} {
		found, err := run(dir, strings.Fields(paths))
		var got []string
		for _, f := range found {
			got = append(got, f.path)
		}
		if got := strings.Join(got, " "); got != want || err != nil {
			t.Errorf("run(%q) found %s, %v, want %s", paths, got, err, want)
		}
	}
}
