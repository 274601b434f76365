package config

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// An Import is a Hazelcast configuration converted to templates of sequencers.
type Import struct {
	YAML  string   // a firn.yaml
	Notes []string // what was left out or renamed
}

// A hazelcast is what a Hazelcast configuration says about generators.
type hazelcast struct {
	client     bool                 // it is the configuration of a client
	generators map[string]generator // by name
	imports    []string             // files that it imports
	importLine int                  // of the first of them
	security   bool                 // it has permissions
}

// A generator is a Flake ID generator, and an entry one of its settings, each
// with its line in the file.
type generator struct {
	line     int
	settings map[string]entry
}

type entry struct {
	text string
	line int
}

// A lineError is a fault in a line of the file.
type lineError struct {
	line int
	error
}

func at(line int, format string, args ...any) *lineError {
	return &lineError{line, fmt.Errorf(format, args...)}
}

// flakeKeys are the settings that a template can have, with the defaults and
// ranges of Hazelcast's FlakeIdGeneratorConfig.
var flakeKeys = []struct {
	name              string
	byDefault, lo, hi int64
}{
	{"epoch-start", 1_514_764_800_000, math.MinInt64, math.MaxInt64},
	{"node-id-offset", 0, 0, math.MaxInt64},
	{"bits-sequence", 6, 0, 63},
	{"bits-node-id", 16, 0, 63},
	{"allowed-future-millis", 15_000, 0, int64(math.MaxInt64 / time.Millisecond)},
}

// ImportHazelcast reads the Flake ID generators of a Hazelcast configuration,
// of members or clients, in XML or YAML. As in Hazelcast, a name without a
// generator has the defaults. Files that this one imports are noted but not
// read. Layouts must be usable at the time now. The result is a firn.yaml that
// Parse and Check accept. All faults of generators are reported at once.
func ImportHazelcast(data []byte, name string, now time.Time) (*Import, error) {
	data, err := utf8Of(data)
	if err != nil {
		return nil, fmt.Errorf("%s:1: %w", name, err)
	}
	read := readYAML
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		read = readXML
	}
	h, err := read(data)
	if err == nil && len(h.generators) == 0 && len(h.imports) > 0 {
		err = at(h.importLine, "no Flake ID generator found; it imports files that may have some: %s", strings.Join(h.imports, ", "))
	}
	if wrong := new(lineError); errors.As(err, &wrong) {
		return nil, fmt.Errorf("%s:%d: %w", name, wrong.line, wrong.error)
	} else if err != nil {
		return nil, YAMLError(name, data, err)
	}
	w := writer{now: now, names: make(map[string]string)}
	w.notes = h.notes(name)
	w.text.WriteString("# Flake ID generators of Hazelcast as sequencers of Firn.\nsequencers:\n")
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(h.generators)) {
		if err := w.generator(key, h.generators[key]); err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: generator %q: %w", name, err.line, key, err.error))
		}
	}
	if _, has := w.names[DefaultTemplate]; !has {
		fmt.Fprintf(&w.text, "  %q: # all other names, as in Hazelcast\n    layout: \"hazelcast\"\n", DefaultTemplate)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return &Import{YAML: w.text.String(), Notes: w.notes}, nil
}

// utf8Of converts a file in UTF-16 to UTF-8, and removes a byte order mark.
func utf8Of(data []byte) ([]byte, error) {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("<\x00")):
	case bytes.HasPrefix(data, []byte("\xfe\xff")), bytes.HasPrefix(data, []byte("\x00<")):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(data, []byte("\ufeff")), nil
	}
	if len(data)%2 != 0 {
		return nil, errors.New("UTF-16 with an odd number of bytes: the file is cut off")
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return bytes.TrimPrefix([]byte(string(utf16.Decode(units))), []byte("\ufeff")), nil
}

// readXML reads Hazelcast's XML, whatever its name spaces.
func readXML(data []byte) (h hazelcast, err error) {
	h.generators = make(map[string]generator)
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is UTF-8, whatever it declares
	var path []string                                                                    // the open elements
	var name, text string                                                                // of the open generator, and of its open setting
	for {
		line, _ := d.InputPos()
		token, err := d.Token()
		if wrong := new(xml.SyntaxError); errors.As(err, &wrong) {
			return h, at(wrong.Line, "%s", wrong.Msg)
		} else if err != nil {
			return h, at(line, "no root element found: %w", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			path = append(path, x.Name.Local)
			switch err := h.open(path, x, line, &name); {
			case err != nil:
				return h, err
			case len(path) == 3:
				text = ""
			}
		case xml.CharData:
			if len(path) == 3 {
				text += string(x)
			}
		case xml.EndElement:
			if len(path) == 3 && path[1] == flakeElement {
				s := h.generators[name].settings
				s[x.Name.Local] = entry{strings.TrimSpace(text), s[x.Name.Local].line}
			}
			if path = path[:len(path)-1]; len(path) == 0 {
				return h, nil
			}
		}
	}
}

const flakeElement = "flake-id-generator"

// open notes the start of an element of XML.
func (h *hazelcast) open(path []string, x xml.StartElement, line int, name *string) error {
	attr := func(name string) string {
		i := slices.IndexFunc(x.Attr, func(a xml.Attr) bool { return a.Name.Local == name })
		if i < 0 {
			return ""
		}
		return x.Attr[i].Value
	}
	switch {
	case len(path) == 1:
		if h.client = path[0] == "hazelcast-client"; !h.client && path[0] != "hazelcast" {
			return at(line, "the root element is %s: it must be hazelcast or hazelcast-client", path[0])
		}
	case len(path) == 2 && path[1] == "import":
		h.imports, h.importLine = append(h.imports, attr("resource")), cmp.Or(h.importLine, line)
	case len(path) == 2 && path[1] == "security":
		h.security = true
	case len(path) == 2 && path[1] == flakeElement:
		*name = cmp.Or(attr("name"), DefaultTemplate)
		if _, twice := h.generators[*name]; twice {
			return at(line, "generator %q is configured twice", *name)
		}
		h.generators[*name] = generator{line, make(map[string]entry)}
	case len(path) == 3 && path[1] == flakeElement:
		settings := h.generators[*name].settings
		if _, twice := settings[path[2]]; twice {
			return at(line, "generator %q: %s is given twice", *name, path[2])
		}
		settings[path[2]] = entry{line: line}
	}
	return nil
}

// readYAML reads Hazelcast's YAML. The decoder refuses repeated keys.
func readYAML(data []byte) (h hazelcast, err error) {
	type section struct {
		Generators yaml.Node `yaml:"flake-id-generator"`
		Imports    yaml.Node `yaml:"import"`
		Security   any       `yaml:"security"`
	}
	var root struct {
		Member *section `yaml:"hazelcast"`
		Client *section `yaml:"hazelcast-client"`
	}
	if err := yaml.Unmarshal(data, &root); err != nil {
		return h, err
	}
	s := root.Member
	if s == nil {
		s, h.client = root.Client, true
	}
	if s == nil {
		return h, at(1, "not a Hazelcast configuration in XML or YAML: it has no hazelcast or hazelcast-client")
	}
	h.security, h.importLine = s.Security != nil, s.Imports.Line
	var generators map[string]yaml.Node
	if err := cmp.Or(s.Imports.Decode(&h.imports), s.Generators.Decode(&generators)); err != nil {
		return h, err
	}
	h.generators = make(map[string]generator)
	for name, n := range generators {
		g := generator{lineOf(&s.Generators, name, &n), make(map[string]entry)}
		var settings map[string]yaml.Node
		if err := n.Decode(&settings); err != nil {
			return h, err
		}
		for key, value := range settings {
			var text string
			if err := value.Decode(&text); err != nil {
				return h, err
			}
			g.settings[key] = entry{text, lineOf(&n, key, &value)}
		}
		h.generators[name] = g
	}
	return h, nil
}

// lineOf returns the line of a key of a mapping, or, if the mapping has it from
// another one, that of the value.
func lineOf(mapping *yaml.Node, key string, value *yaml.Node) int {
	for i, k := range resolved(mapping).Content {
		if i%2 == 0 && k.Value == key {
			return k.Line
		}
	}
	return value.Line
}

// notes returns what an import leaves to the user.
func (h *hazelcast) notes(name string) (all []string) {
	for _, file := range h.imports {
		all = append(all, fmt.Sprintf("%s imports %s, which may have Flake ID generators: import that file too", name, file))
	}
	if h.client {
		all = append(all, name+" configures a client, which has no layouts: import the configuration of the members too")
	}
	if h.security {
		all = append(all, "permissions are not imported: give each client a token (firn token new --sequencers PATTERN)")
	}
	return all
}

// A writer writes templates.
type writer struct {
	text  strings.Builder
	now   time.Time
	names map[string]string // of generators, by name of the template
	notes []string
}

// generator writes the template of one generator.
func (w *writer) generator(generator string, g generator) *lineError {
	name, err := templateName(generator)
	if err != nil {
		return &lineError{g.line, err}
	}
	if other, has := w.names[name]; has {
		return at(g.line, "generator %q would become %q too: rename one of them", other, name)
	}
	w.names[name] = generator
	number := make(map[string]int64)
	for _, k := range flakeKeys {
		number[k.name] = k.byDefault
		s, given := g.settings[k.name]
		if !given {
			continue
		}
		n, err := strconv.ParseInt(strings.ReplaceAll(s.text, "_", ""), 0, 64)
		if err != nil || n < k.lo || n > k.hi {
			return at(s.line, "%s: %q is not a number from %d to %d", k.name, s.text, k.lo, k.hi)
		}
		number[k.name] = n
	}
	layout, err := layoutOf(number)
	if err != nil {
		return &lineError{g.line, err}
	}
	ahead := time.Duration(number["allowed-future-millis"]) * time.Millisecond
	t := Template{MaxAhead: &ahead}
	offset, last := number["node-id-offset"], int64(1)<<number["bits-node-id"]-1
	if offset != 0 {
		t.Nodes = &grant.Range{Lo: uint64(offset), Hi: uint64(last)}
	}
	if err := cmp.Or(t.Set("layout", layout), t.check(sequencer.Options{}, w.now)); err != nil {
		return at(g.line, "%s", textfmt.Message(err))
	}
	fmt.Fprintf(&w.text, "  %q:", name)
	if name != generator {
		fmt.Fprintf(&w.text, " # %+q in Hazelcast", generator)
		w.notes = append(w.notes, fmt.Sprintf("%q became %q: clients must use the new name", generator, name))
	}
	fmt.Fprintf(&w.text, "\n    layout: %q\n", layout)
	if ahead != 15*time.Second {
		fmt.Fprintf(&w.text, "    max-ahead: %v\n", ahead)
	}
	if offset != 0 {
		fmt.Fprintf(&w.text, "    nodes: %d..%d # node-id-offset; give the other cluster 0..%d, or less\n", offset, last, offset-1)
	}
	var others []string
	for _, key := range slices.Sorted(maps.Keys(g.settings)) {
		if _, has := number[key]; !has {
			others = append(others, key+" "+g.settings[key].text)
		}
	}
	if len(others) > 0 {
		w.notes = append(w.notes, fmt.Sprintf("%q: not settings of a sequencer: %s; clients configure prefetching", generator, strings.Join(others, ", ")))
	}
	return nil
}

// layoutOf returns the layout of a generator.
func layoutOf(number map[string]int64) (string, error) {
	seq, node := number["bits-sequence"], number["bits-node-id"]
	if seq+node >= 63 {
		return "", fmt.Errorf("bits-sequence %d and bits-node-id %d leave no bits for the time", seq, node)
	}
	text := "hazelcast"
	if seq != 6 || node != 16 {
		text += fmt.Sprintf(",node-bits=%d,seq-bits=%d", node, seq)
	}
	if epoch := number["epoch-start"]; epoch != 1_514_764_800_000 {
		text += ",epoch=" + strconv.FormatInt(epoch, 10)
	}
	return text, nil
}

// templateName converts a Hazelcast name, which may be any text, to the name or
// pattern of a template. Characters that are not allowed become -.
func templateName(name string) (string, error) {
	text := strings.TrimLeft(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("*._:-", c) {
			return c
		}
		return '-'
	}, name), "._:-")
	switch {
	case strings.Contains(name, "${"):
		return "", errors.New("the name has a property of the Java process: replace it with its value")
	case !IsPattern(text):
		return "", errors.New("this cannot be the name of a sequencer: it needs an ASCII letter or digit, up to 128 characters and at most one *")
	case text == DefaultTemplate && name != text:
		return "", fmt.Errorf("it would become %q, which is the template of all other names: rename it", text)
	}
	return text, nil
}
