package lines

import "fmt"

// A Place is where a text comes from: an argument, or a line of a file or of
// the standard input.
type Place struct {
	File string // "" for arguments and the standard input
	Line int    // 0 for arguments
}

func (p Place) String() string {
	switch {
	case p.Line == 0:
		return ""
	case p.File == "":
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("%s line %d", p.File, p.Line)
}

// Places finds the places of IDs again. It keeps the first of each run of
// consecutive lines.
type Places struct {
	count uint64
	runs  []run
	last  Place
}

type run struct {
	before uint64 // IDs before it
	Place
}

// maxRuns bounds the memory.
const maxRuns = 100_000

// Add adds the place of the next ID.
func (p *Places) Add(at Place) {
	if p.last.Line++; (p.count == 0 || at != p.last) && len(p.runs) < maxRuns {
		p.runs = append(p.runs, run{p.count, at})
	}
	p.last = at
	p.count++
}

// Of names the place of the ID with n others before it.
func (p *Places) Of(n uint64) string {
	i := len(p.runs) - 1
	for i >= 0 && p.runs[i].before > n {
		i--
	}
	if i < 0 || len(p.runs) == maxRuns {
		return fmt.Sprintf("ID %d", n+1)
	}
	at := p.runs[i]
	return Place{at.File, at.Line + int(n-at.before)}.String()
}
