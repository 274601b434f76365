package config

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A reader collects the generators of a file.
type reader struct {
	flakes  []flake
	notes   []note
	others  []string // keys that do not concern generators
	imports []string // files that this one imports
	client  bool
}

// file reads a file.
func (r *reader) file(data []byte, name string) error {
	if len(data) > maxFile {
		return fmt.Errorf("%s: larger than %d MiB", name, maxFile>>20)
	}
	text := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // a byte order mark
	if !utf8.Valid(text) {
		return fmt.Errorf("%s: not valid UTF-8; save it as UTF-8", name)
	}
	if isXML(text) {
		return r.xml(text, name)
	}
	return r.yaml(text, name)
}

// isXML reports whether a text is XML rather than YAML.
func isXML(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("<"))
}

// imported notes an import, which is not read.
func (r *reader) imported(resource string, at place) {
	r.imports = append(r.imports, resource)
	r.notes = append(r.notes, note{noteImport, fmt.Sprintf("%s: import of %s, which may have Flake ID generators: import that file too", at, resource)})
}

// permissions notes permissions for generators.
func (r *reader) permissions(count int, at place) {
	if count == 0 {
		r.others = append(r.others, "security")
		return
	}
	r.notes = append(r.notes, note{noteSecurity, fmt.Sprintf("%s: security has %d permissions for Flake ID generators: give each principal a token (firn token new --sequencers PATTERN)", at, count)})
}

// set records a value of a generator.
func (r *reader) set(f *flake, key string, v value) error {
	if !slices.ContainsFunc(flakeKeys, func(k flakeKey) bool { return k.name == key }) {
		r.notes = append(r.notes, note{noteUnknown, fmt.Sprintf("%s: %s of %s has no counterpart", v.place, key, f.name)})
		return nil
	}
	if other, has := f.values[key]; has {
		return fmt.Errorf("%s: %s of %s is already given in %s", v.place, key, f.name, other.place)
	}
	f.values[key] = v
	return nil
}

// xml reads Hazelcast's XML. It ignores name spaces.
func (r *reader) xml(data []byte, file string) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // file has checked that it is UTF-8
	at := func() place { n, _ := d.InputPos(); return place{file, n} }
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				if t.Name.Local != "hazelcast" && t.Name.Local != "hazelcast-client" {
					return fmt.Errorf("%s: the root element is %s: it must be hazelcast or hazelcast-client", at(), t.Name.Local)
				}
				r.client = r.client || t.Name.Local == "hazelcast-client"
				depth++
				continue
			}
			if err := r.element(d, t, at); err != nil {
				return err
			}
		case xml.EndElement:
			depth--
		}
	}
}

// attribute returns the value of an attribute, or "".
func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// element reads an element below the root.
func (r *reader) element(d *xml.Decoder, t xml.StartElement, at func() place) (err error) {
	begin := at()
	switch t.Name.Local {
	case "flake-id-generator":
		f := flake{name: attribute(t, "name"), place: begin, values: make(map[string]value)}
		f.name = cmp.Or(f.name, DefaultTemplate)
		if err := r.flakeXML(d, &f, at); err != nil {
			return err
		}
		r.flakes = append(r.flakes, f)
		return nil
	case "import":
		r.imported(attribute(t, "resource"), begin)
	case "security":
		count, err := countXML(d, "flake-id-generator-permission")
		if err != nil {
			return fmt.Errorf("%s: %w", begin.file, err)
		}
		r.permissions(count, begin)
		return nil
	default:
		r.others = append(r.others, t.Name.Local)
	}
	if err = d.Skip(); err != nil {
		return fmt.Errorf("%s: %w", begin.file, err)
	}
	return nil
}

// countXML reads the rest of an element and counts the elements with a name in
// it.
func countXML(d *xml.Decoder, name string) (count int, err error) {
	for depth := 1; depth > 0; {
		token, err := d.Token()
		if err != nil {
			return 0, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			if t.Name.Local == name {
				count++
			}
		case xml.EndElement:
			depth--
		}
	}
	return count, nil
}

// flakeXML reads the content of a flake-id-generator.
func (r *reader) flakeXML(d *xml.Decoder, f *flake, at func() place) error {
	for {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("%s: %w", f.place.file, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			begin := at()
			text, err := textXML(d)
			if err != nil {
				return fmt.Errorf("%s: %w", f.place.file, err)
			}
			if err := r.set(f, t.Name.Local, value{strings.TrimSpace(text), begin}); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		}
	}
}

// textXML reads the rest of an element and returns its text.
func textXML(d *xml.Decoder) (string, error) {
	var text strings.Builder
	for {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			if err := d.Skip(); err != nil {
				return "", err
			}
		case xml.EndElement:
			return text.String(), nil
		}
	}
}

// yaml reads Hazelcast's YAML.
func (r *reader) yaml(data []byte, file string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind == 0 || resolved(doc.Content[0]).Kind != yaml.MappingNode {
		return fmt.Errorf("%s: not a Hazelcast configuration in XML or YAML", file)
	}
	top, err := pairs(doc.Content[0], file)
	if err != nil {
		return err
	}
	isRoot := func(p pair) bool { return p.key.Value == "hazelcast" || p.key.Value == "hazelcast-client" }
	if !slices.ContainsFunc(top, isRoot) {
		return fmt.Errorf("%s:%d: the first key is %q: it must be hazelcast or hazelcast-client", file, doc.Content[0].Line, firstKey(top))
	}
	for _, p := range top {
		if !isRoot(p) {
			continue // Hazelcast ignores it; it may hold anchors
		}
		root := p.key.Value
		r.client = r.client || root == "hazelcast-client"
		sections, err := pairs(p.value, file)
		if err != nil {
			return err
		}
		for _, s := range sections {
			if err := r.section(s, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func firstKey(all []pair) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].key.Value
}

// section reads a section of Hazelcast's YAML.
func (r *reader) section(s pair, file string) error {
	at := place{file, s.key.Line}
	switch s.key.Value {
	case "flake-id-generator":
		generators, err := pairs(s.value, file)
		if err != nil {
			return err
		}
		if s.value.Kind != yaml.MappingNode && s.value.Tag != "!!null" {
			return fmt.Errorf("%s:%d: flake-id-generator must map names to settings", file, s.value.Line)
		}
		for _, g := range generators {
			f := flake{name: g.key.Value, place: place{file, g.key.Line}, values: make(map[string]value)}
			settings, err := pairs(g.value, file)
			if err != nil {
				return err
			}
			for _, v := range settings {
				if err := r.set(&f, v.key.Value, value{v.value.Value, place{file, v.key.Line}}); err != nil {
					return err
				}
			}
			r.flakes = append(r.flakes, f)
		}
	case "import":
		for _, n := range s.value.Content {
			r.imported(resolved(n).Value, place{file, n.Line})
		}
	case "security":
		r.permissions(countYAML(s.value, "flake-id-generator"), at)
	default:
		r.others = append(r.others, s.key.Value)
	}
	return nil
}

// countYAML counts the entries of keys with a name. It does not follow aliases.
func countYAML(n *yaml.Node, name string) (count int) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == name {
			count += max(1, len(resolved(c).Content))
			continue
		}
		count += countYAML(c, name)
	}
	return count
}

// A pair is a key of a mapping and its value, with aliases resolved.
type pair struct{ key, value *yaml.Node }

// mostMerges bounds how many mappings << can merge into one, as merges can
// nest.
const mostMerges = 1000

// pairs returns the keys and values of a mapping, including those that <<
// merges into it. A repeated key is an error; the mapping's own key overrides a
// merged one.
func pairs(n *yaml.Node, file string) (all []pair, err error) {
	var merge func(n *yaml.Node) error
	seen := make(map[string]bool)
	merges := 0
	merge = func(n *yaml.Node) error {
		n = resolved(n)
		if merges++; merges > mostMerges {
			return fmt.Errorf("%s:%d: << merges more than %d mappings into one", file, n.Line, mostMerges)
		}
		own := make(map[string]int)
		var merged []*yaml.Node
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			k, v := resolved(n.Content[i]), n.Content[i+1]
			if line, twice := own[k.Value]; twice {
				return fmt.Errorf("%s:%d: %s is already on line %d", file, k.Line, k.Value, line)
			}
			own[k.Value] = k.Line
			if k.Tag == "!!merge" {
				merged = append(merged, v)
				continue
			}
			if !seen[k.Value] {
				seen[k.Value] = true
				all = append(all, pair{k, resolved(v)})
			}
		}
		for _, m := range merged {
			m = resolved(m)
			of := []*yaml.Node{m}
			if m.Kind == yaml.SequenceNode {
				of = m.Content
			}
			for _, one := range of {
				if err := merge(one); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = merge(n)
	return all, err
}
