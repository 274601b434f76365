package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// A documented table is a table of a document.
type documented func(*Report) string

// documents returns the tables that a document can have, by name.
func documents() map[string]documented {
	return map[string]documented{
		"run":     runLine,
		"summary": summaryTable,
		"targets": targetTable,
		"peers":   peerTable,
		"text":    func(r *Report) string { return plainTable(r, "append/", "parse/", "parts/") },
		"layouts": func(r *Report) string { return plainTable(r, "layout/", "uuidv7/", "go1.27:uuidv7/") },
		"servers": func(r *Report) string {
			return plainTable(r, "resp/", "lettuce/", "single/", "http/", "packed-10000/", "fair/", "client/")
		},
		"stores": func(r *Report) string {
			return plainTable(r, "clone/", "serve/", "writes/", "active-1000/", "cas/", "join-")
		},
	}
}

// places returns an expression that finds the tables in a document: the name
// and the current content.
func places() *regexp.Regexp {
	return regexp.MustCompile(`(?s)<!-- bench: ([a-z]+) -->\n.*?<!-- end -->`)
}

// document replaces the tables in a file by those of a report.
func document(r *Report, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out, err := fillIn(r, string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(out), 0o644)
}

// fillIn is document without files.
func fillIn(r *Report, text string) (string, error) {
	var unknown error
	blocks := places()
	found := false
	out := blocks.ReplaceAllStringFunc(text, func(block string) string {
		name := blocks.FindStringSubmatch(block)[1]
		table, ok := documents()[name]
		if !ok {
			unknown = fmt.Errorf("unknown table %q", name)
			return block
		}
		found = true
		return "<!-- bench: " + name + " -->\n" + table(r) + "<!-- end -->"
	})
	if unknown == nil && !found {
		unknown = errors.New("it has no table to replace")
	}
	return out, unknown
}

// runLine returns where and when the report was made.
func runLine(r *Report) string {
	return fmt.Sprintf("Measured on %s, in %v: %s.\n", r.Begin.Format("2006-01-02"), r.Lasted.Round(time.Second), r.Machine)
}

// value formats a figure with its quartiles.
func value(f Figure) string {
	s := number(f.Value) + " " + f.Unit
	if f.Samples > 1 {
		s += " (" + number(f.Low) + "–" + number(f.High) + ")"
	}
	return s
}

// summaryTable contains the figures that most readers look for.
func summaryTable(r *Report) string {
	var b strings.Builder
	b.WriteString("| | | figure |\n|---|---|---|\n")
	for _, row := range []struct{ what, figure string }{
		{"an ID in Go", "next/firn"},
		{"an ID in each of two goroutines, with cursors", "threads/firn-cursor/2"},
		{"100,000 IDs from idle, one by one", "burst-100k/firn"},
		{"an ID from servers, with the Go client", "client/next"},
		{"`INCR` requests, one at a time per connection", "resp/p1/firn"},
		{"`INCR` requests in pipelines of 100", "resp/p100/firn"},
		{"IDs in packed batches over RESP", "packed-10000/firn-resp"},
		{"`firn serve` from its start to the first ID", "serve/first-id"},
		{"memory of `firn serve`", "serve/rss"},
		{"1,000 members joining etcd at the same time", "join-1000/etcd"},
	} {
		if f, ok := r.find(row.figure); ok {
			fmt.Fprintf(&b, "| %s | %s %s | `%s` |\n", row.what, number(f.Value), f.Unit, f.Name)
		}
	}
	return b.String()
}

// targetTable contains every figure that has a target.
func targetTable(r *Report) string {
	var b strings.Builder
	b.WriteString("| figure | value (quartiles) | target | | what it is about |\n|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		if f.Target != "-" {
			status := f.Status
			if status == "short" {
				status = "**short**"
			}
			if strings.Contains(f.Note, "busy") {
				status += ", busy machine"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Name, value(f), strings.NewReplacer("<=", "≤ ", ">=", "≥ ").Replace(f.Target), status, f.From)
		}
	}
	return b.String()
}

// peerTable has a row for each subject that makes IDs.
func peerTable(r *Report) string {
	var b strings.Builder
	b.WriteString("| | an ID | times Firn's | two threads | 100,000 from idle | of its cap | of a core | its own bound |\n|---|---|---|---|---|---|---|---|\n")
	cell := func(name string) string {
		if f, ok := r.find(name); ok {
			return number(f.Value) + " " + f.Unit
		}
		return ""
	}
	for _, f := range r.Figures {
		name, ok := strings.CutPrefix(f.Name, "next/")
		if !ok || strings.ContainsAny(name, ":/") {
			continue
		}
		sustained := name
		if name == "firn-10.12" {
			sustained = "firn-no-ahead"
		}
		bound := f.Bound
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", name, cell("next/"+name), cell("next/"+name+":firn"), cell("threads/"+name+"/2"),
			cell("burst-100k/"+name), cell("sustained/"+sustained+"/of-cap"), cell("sustained/"+sustained+"/cpu"), bound)
	}
	return b.String()
}

// plainTable contains the figures whose names begin with one of the prefixes.
func plainTable(r *Report, prefixes ...string) string {
	var b strings.Builder
	b.WriteString("| figure | value (quartiles) | |\n|---|---|---|\n")
	for _, f := range r.Figures {
		for _, prefix := range prefixes {
			if strings.HasPrefix(f.Name, prefix) && !strings.HasSuffix(f.Name, "/allocs") {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, value(f), f.Note)
				break
			}
		}
	}
	return b.String()
}
