package noderun

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Template is text with the node ID in it: {node}, {node%N} for the remainder
// and {node/N} for the quotient of a division by N, or several operations from
// left to right, as in {node/32%32}. Other text is unchanged, including braces.
// The zero Template is empty.
type Template struct{ pieces []piece }

// A piece is text, followed by the node ID if there are operations.
type piece struct {
	text string
	node bool
	ops  []op
}

type op struct {
	sign byte // % or /
	by   uint64
}

const open = "{node"

// ParseTemplate parses a Template.
func ParseTemplate(text string) (Template, error) {
	var t Template
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, open)
		p := piece{text: before, node: found}
		if found {
			inner, next, closed := strings.Cut(after, "}")
			if !closed {
				return Template{}, templateError(text)
			}
			var err error
			if p.ops, err = parseOps(inner); err != nil {
				return Template{}, templateError(text)
			}
			after = next
		}
		t.pieces = append(t.pieces, p)
		rest = after
	}
	return t, nil
}

func templateError(text string) error {
	return fmt.Errorf("invalid template %q: write the node ID as {node}, {node%%N} or {node/N}, where N is an integer above 0", text)
}

// parseOps parses the operations between {node and }.
func parseOps(text string) (ops []op, err error) {
	for text != "" {
		sign := text[0]
		digits := text[1:]
		if i := strings.IndexAny(digits, "%/"); i >= 0 {
			digits = digits[:i]
		}
		by, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || by == 0 || sign != '%' && sign != '/' {
			return nil, strconv.ErrSyntax
		}
		ops = append(ops, op{sign, by})
		text = text[1+len(digits):]
	}
	return ops, nil
}

// expand returns the text for a node ID.
func (t Template) expand(node uint64) string {
	var b strings.Builder
	for _, p := range t.pieces {
		b.WriteString(p.text)
		if !p.node {
			continue
		}
		n := node
		for _, o := range p.ops {
			if o.sign == '%' {
				n %= o.by
			} else {
				n /= o.by
			}
		}
		b.WriteString(strconv.FormatUint(n, 10))
	}
	return b.String()
}

// hasNode reports whether the text contains the node ID.
func (t Template) hasNode() bool {
	return slices.ContainsFunc(t.pieces, func(p piece) bool { return p.node })
}

// A Variable is an environment variable of the command.
type Variable struct {
	Name  string
	Value Template
}

// ParseVariable parses NAME=TEMPLATE.
func ParseVariable(text string) (v Variable, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" || strings.ContainsAny(name, "\x00 ") {
		return v, fmt.Errorf("invalid variable %q: write NAME=TEMPLATE, such as WORKER_ID={node%%32}", text)
	}
	v.Name = name
	v.Value, err = ParseTemplate(value)
	return v, err
}
