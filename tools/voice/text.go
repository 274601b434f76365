package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The longest lines of Markdown and of comments, in columns.
const longestMarkdown, longestComment = 100, 80

// A paragraph is text whose lines are joined by spaces, so that a phrase is
// found across the end of a line.
type paragraph struct {
	text   string
	starts []int // where each line begins in text
	lines  []int // the number of each line in the file
}

func (p *paragraph) add(line int, text, separator string) {
	if text == "" {
		return
	}
	if p.text != "" {
		p.text += separator
	}
	p.starts = append(p.starts, len(p.text))
	p.lines = append(p.lines, line)
	p.text += text
}

// lineOf returns the number of the line that holds the byte at offset.
func (p *paragraph) lineOf(offset int) int {
	i, found := slices.BinarySearch(p.starts, offset)
	if !found {
		i--
	}
	return p.lines[i]
}

// blank returns as many bytes as s has, none of them a word.
func blank(s string) string { return strings.Repeat("`", len(s)) }

var (
	marker = regexp.MustCompile(`^\s*(?://+|#+|\*+|/\*+|<!--|>)?[ \t]?`)    // of a comment or a quotation
	opener = regexp.MustCompile(`^\s*(?:[-*|+] |\||\d+\. |#|=|\t|[{}<]|$)`) // of a paragraph, in Markdown or a comment
)

// checkLines checks lines of text, the first of which has the number first.
func checkLines(path string, first int, lines []string) (all []finding) {
	var p paragraph
	for i, text := range lines {
		if opener.MatchString(text) {
			all = append(all, phrases(path, p)...)
			p = paragraph{}
		}
		p.add(first+i, strings.TrimSpace(text), " ")
	}
	return append(all, phrases(path, p)...)
}

// tooLong returns a finding if a line is longer than limit and can be wrapped.
func tooLong(path string, line int, text string, limit int) []finding {
	columns, words := utf8.RuneCountInString(text), strings.Fields(text)
	long := func(word string) bool { return len(word) > limit*2/3 }
	if columns <= limit || len(words) < 2 || slices.ContainsFunc(words, long) {
		return nil
	}
	return []finding{{path, line, fmt.Sprintf("%d columns: wrap at %d", columns, limit)}}
}

// checkText checks a template, a script, or another file that mixes prose and code.
func checkText(path, src string) []finding {
	lines := strings.Split(src, "\n")
	for i, text := range lines {
		lines[i] = marker.ReplaceAllString(text, "")
	}
	return checkLines(path, 1, lines)
}

// checkMarkdown checks a page. Code is not prose, and a row of a table cannot be
// wrapped.
func checkMarkdown(path, src string) (all []finding) {
	lines := strings.Split(src, "\n")
	code := false
	for i, text := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(text), "```")
		if fence || code {
			lines[i] = ""
		}
		code = code != fence
		if !code && !fence && !strings.HasPrefix(text, "|") {
			all = append(all, tooLong(path, i+1, text, longestMarkdown)...)
		}
	}
	return append(all, checkLines(path, 1, lines)...)
}
