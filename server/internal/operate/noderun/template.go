package noderun

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Template is text with the node ID in it: {node}, {node%N} for the remainder
// and {node/N} for the quotient of a division by N, or several operations from
// left to right, as in {node/32%32}. Other text is unchanged, including braces.
type Template string

const open = "{node"

var (
	expression = regexp.MustCompile(`\{node([%/][1-9][0-9]{0,18})*\}`)
	operation  = regexp.MustCompile(`[%/][0-9]+`)
)

// ParseTemplate parses a Template.
func ParseTemplate(text string) (Template, error) {
	if strings.Count(text, open) != len(expression.FindAllString(text, -1)) {
		return "", fmt.Errorf("invalid template %q: write the node ID as {node}, {node%%N} or {node/N}, where "+
			"N is an integer above 0", text)
	}
	return Template(text), nil
}

// expand returns the text for a node ID.
func (t Template) expand(node uint64) string {
	return expression.ReplaceAllStringFunc(string(t), func(text string) string {
		n := node
		for _, op := range operation.FindAllString(text, -1) {
			by, _ := strconv.ParseUint(op[1:], 10, 64)
			if op[0] == '%' {
				n %= by
			} else {
				n /= by
			}
		}
		return strconv.FormatUint(n, 10)
	})
}

// hasNode reports whether the text contains the node ID.
func (t Template) hasNode() bool { return strings.Contains(string(t), open) }

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
