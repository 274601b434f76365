package config

import (
	"bytes"
	"cmp"
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
	Generators map[string]map[string]string `yaml:"flake-id-generator"` // settings by name
	Imports    []string                     `yaml:"import"`             // files that it imports
	Security   any                          `yaml:"security"`           // nil if it has no permissions

	client bool // it is the configuration of a client
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
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	read := readYAML
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		read = readXML
	}
	h, err := read(data)
	if err == nil && len(h.Generators) == 0 && len(h.Imports) > 0 {
		err = fmt.Errorf("no Flake ID generator found; it imports files that may have some: %s",
			strings.Join(h.Imports, ", "))
	}
	switch syntax, ok := errors.AsType[*xml.SyntaxError](err); {
	case ok:
		return nil, fmt.Errorf("%s:%d: %s", name, syntax.Line, syntax.Msg)
	case err != nil && strings.HasPrefix(err.Error(), "yaml: "):
		return nil, YAMLError(name, data, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w := writer{now: now, names: make(map[string]string)}
	w.notes = h.notes(name)
	w.text.WriteString("# Flake ID generators of Hazelcast as sequencers of Firn.\nsequencers:\n")
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(h.Generators)) {
		if err := w.generator(key, h.Generators[key]); err != nil {
			faults = append(faults, fmt.Errorf("%s: generator %q: %s", name, key, textfmt.Message(err)))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if _, has := w.names[defaultTemplate]; !has {
		fmt.Fprintf(&w.text, "  %q: # all other names, as in Hazelcast\n    layout: \"hazelcast\"\n", defaultTemplate)
	}
	return &Import{YAML: w.text.String(), Notes: w.notes}, nil
}

// readXML reads Hazelcast's XML, whatever its name spaces.
func readXML(data []byte) (h hazelcast, err error) {
	var root struct {
		XMLName xml.Name
		Imports []struct {
			Resource string `xml:"resource,attr"`
		} `xml:"import"`
		Security   *struct{} `xml:"security"`
		Generators []struct {
			Name     string `xml:"name,attr"`
			Settings []struct {
				XMLName xml.Name
				Text    string `xml:",chardata"`
			} `xml:",any"`
		} `xml:"flake-id-generator"`
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	// It is UTF-8, whatever it declares.
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	if err := d.Decode(&root); err == io.EOF {
		return h, errors.New("no root element found")
	} else if err != nil {
		return h, err
	}
	if h.client = root.XMLName.Local == "hazelcast-client"; !h.client && root.XMLName.Local != "hazelcast" {
		return h, fmt.Errorf("the root element is %s: it must be hazelcast or hazelcast-client", root.XMLName.Local)
	}
	for _, i := range root.Imports {
		h.Imports = append(h.Imports, i.Resource)
	}
	if root.Security != nil {
		h.Security = true
	}
	h.Generators = make(map[string]map[string]string)
	for _, g := range root.Generators {
		name := cmp.Or(g.Name, defaultTemplate)
		if h.Generators[name] != nil {
			return h, fmt.Errorf("generator %q is configured twice", name)
		}
		settings := make(map[string]string)
		for _, s := range g.Settings {
			if _, twice := settings[s.XMLName.Local]; twice {
				return h, fmt.Errorf("generator %q: %s is given twice", name, s.XMLName.Local)
			}
			settings[s.XMLName.Local] = strings.TrimSpace(s.Text)
		}
		h.Generators[name] = settings
	}
	return h, nil
}

// readYAML reads Hazelcast's YAML. The decoder refuses repeated keys.
func readYAML(data []byte) (h hazelcast, err error) {
	var root struct {
		Member *hazelcast `yaml:"hazelcast"`
		Client *hazelcast `yaml:"hazelcast-client"`
	}
	switch err := yaml.Unmarshal(data, &root); {
	case err != nil:
		return h, err
	case root.Member != nil:
		return *root.Member, nil
	case root.Client != nil:
		root.Client.client = true
		return *root.Client, nil
	}
	return h, errors.New("not a Hazelcast configuration in XML or YAML: it has no hazelcast or hazelcast-client")
}

// notes returns what an import leaves to the user.
func (h *hazelcast) notes(name string) (all []string) {
	for _, file := range h.Imports {
		all = append(all,
			fmt.Sprintf("%s imports %s, which may have Flake ID generators: import that file too", name, file))
	}
	if h.client {
		all = append(all,
			name+" configures a client, which has no layouts: import the configuration of the members too")
	}
	if h.Security != nil {
		all = append(all,
			"permissions are not imported: give each client a token (firn token new --sequencers PATTERN)")
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
func (w *writer) generator(generator string, settings map[string]string) error {
	name, err := templateName(generator)
	if err != nil {
		return err
	}
	if other, has := w.names[name]; has {
		return fmt.Errorf("generator %q would become %q too: rename one of them", other, name)
	}
	w.names[name] = generator
	number := make(map[string]int64)
	for _, k := range flakeKeys {
		number[k.name] = k.byDefault
		text, given := settings[k.name]
		if !given {
			continue
		}
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
		if err != nil || n < k.lo || n > k.hi {
			return fmt.Errorf("%s: %q is not a number from %d to %d", k.name, text, k.lo, k.hi)
		}
		number[k.name] = n
	}
	layout, err := layoutOf(number)
	if err != nil {
		return err
	}
	ahead := time.Duration(number["allowed-future-millis"]) * time.Millisecond
	t := Template{MaxAhead: &ahead}
	offset, last := number["node-id-offset"], int64(1)<<number["bits-node-id"]-1
	if offset != 0 {
		t.Nodes = &grant.NodeRange{Lo: uint64(offset), Hi: uint64(last)}
	}
	if err := cmp.Or(t.Set("layout", layout), t.check(sequencer.Options{}, w.now)); err != nil {
		return err
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
		fmt.Fprintf(&w.text, "    nodes: %d..%d # node-id-offset; give the other cluster 0..%d, or less\n", offset,
			last, offset-1)
	}
	var others []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if _, has := number[key]; !has {
			others = append(others, key+" "+settings[key])
		}
	}
	if len(others) > 0 {
		w.notes = append(w.notes, fmt.Sprintf("%q: not settings of a sequencer: %s; clients configure prefetching",
			generator, strings.Join(others, ", ")))
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
		return "", errors.New("this cannot be the name of a sequencer: it needs an ASCII letter or digit, up to 128 " +
			"characters and at most one *")
	case text == defaultTemplate && name != text:
		return "", fmt.Errorf("it would become %q, which is the template of all other names: rename it", text)
	}
	return text, nil
}
