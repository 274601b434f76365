package config

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// faultLine matches a fault with its place; faults of YAML itself report the
// line in their own way.
var faultLine = regexp.MustCompile(`^f:([0-9]+): .`)

// FuzzFaults: a file is understood as a whole or refused as a whole. What was
// understood appears once, with its line. What was refused has a line, and an
// unknown key is always a fault.
func FuzzFaults(f *testing.F) {
	for _, text := range []string{
		"listen: [a, b]\ntls: {cert: c, key: k}\nlimits:\n  connections: 5\n",
		"listen: a\nlisten: b\n",
		"listen:\n- a\n-\n",
		"sequencers:\n  default:\n  a*: {layout: hazelcast, max-ahead: 1s, window: 60s, nodes: 0..5}\n  a*b*: {}\n",
		"sequencers: {x: {nodes: 0..99999, layout: 'snowcast,nodes=300'}}\n",
		"tls: {crt: x}\nstroe: y\n? {a: b}\n: c\n",
		"&a listen: *a\n<<: {store: x}\n",
		"--- \nstore: x\n---\nstore: y\n",
		"%YAML 1.1\n---\nstore: !!binary aGk=\n",
		"store: |\n  a\n  b\n",
		"\ufeffstore: 'x\n\n  y'\n",
		"sequencers: {\"a\\u0000\": {max-ahead: -1s}, '': {}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data, "f", known)
		lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + bytes.Count(data, []byte("\u0085")) +
			bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029")) + 1
		inFile := func(line int) bool { return line >= 1 && line <= lines }
		if err != nil {
			if file != nil {
				t.Fatalf("both %+v and %v", file, err)
			}
			text := err.Error()
			if !strings.HasPrefix(text, "f:") {
				t.Fatalf("the fault %q does not name the file", text)
			}
			if many, ok := err.(interface{ Unwrap() []error }); ok {
				for _, one := range many.Unwrap() {
					m := faultLine.FindStringSubmatch(one.Error())
					if m == nil {
						t.Fatalf("the fault %q has no line", one)
					}
					if n, _ := strconv.Atoi(m[1]); !inFile(n) {
						t.Fatalf("the fault %q is in none of %d lines", one, lines)
					}
				}
			}
			return
		}

		// Known, and within the file.
		for key, s := range file.Settings {
			if !slices.Contains(known, key) || !inFile(s.Line) {
				t.Fatalf("%s: %+v, of %d lines", key, s, lines)
			}
		}
		patterns := make(map[string]bool)
		for _, p := range file.Templates {
			if patterns[p.Pattern] || p.Pattern == "" || strings.Count(p.Pattern, "*") > 1 || !inFile(p.Line) {
				t.Fatalf("%+v, of %d lines", p, lines)
			}
			patterns[p.Pattern] = true
			if p.MaxAhead != nil && *p.MaxAhead < 0 || p.Window < 0 || p.Nodes != nil && p.Nodes.Lo > p.Nodes.Hi || !p.Layout.IsZero() && p.Layout.ReadOnly() {
				t.Fatalf("%+v", p)
			}
			// A name that is its own pattern matches itself.
			if !strings.Contains(p.Pattern, "*") {
				if got, err := file.Template(p.Pattern); err != nil || got.Line != p.Line {
					t.Fatalf("the name %q has %+v, %v", p.Pattern, got, err)
				}
			}
		}

		// With one unknown key the whole file is refused.
		if len(file.Settings)+len(file.Templates) > 0 {
			var root yaml.Node
			if yaml.Unmarshal(data, &root) != nil || root.Kind == 0 {
				t.Fatalf("%q is no YAML", data)
			}
			top := root.Content[0]
			top.Content = append(top.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "lstien"}, &yaml.Node{Kind: yaml.ScalarNode, Value: "x"})
			wrong, err := yaml.Marshal(top)
			if err != nil {
				return // it has an alias of its own kind
			}
			if _, err := Parse(wrong, "f", known); err == nil || !strings.Contains(err.Error(), `"lstien"`) {
				t.Fatalf("%q with an unknown key: %v", wrong, err)
			}
		}
	})
}
