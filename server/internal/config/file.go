package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/typed"
)

// A Setting is the value of a key as written.
type Setting struct {
	Key    string   // its path, such as tls.cert
	Values []string // one value, or the values of a list
	Line   int      // in the file
}

// A Template is how the sequencer of a name is created and used. A field with
// its zero value changes nothing.
type Template struct {
	Layout   firn.Layout    // of a sequencer that is created
	MaxAhead *time.Duration // likewise
	Window   time.Duration  // likewise
	Prefix   string         // likewise
	LowBits  int            // likewise
	Nodes    *grant.Range   // node IDs that this server may take
	Existing bool           // the sequencer must exist; it is not created
}

// A NamedTemplate is the Template of a name, or of names that match a pattern,
// in a File.
type NamedTemplate struct {
	Template
	Pattern string
	Line    int

	lines   map[string]int // of its keys
	unknown bool           // the given layout cannot be read
}

// DefaultTemplate is the name of the template for names without another one.
const DefaultTemplate = "default"

// A File is a parsed configuration.
type File struct {
	Name      string
	Settings  []Setting // in the order of the file
	Templates []NamedTemplate
}

// Setting returns the value of a key; its Line is 0 if the file has none.
func (f *File) Setting(key string) Setting {
	if f != nil {
		for _, s := range f.Settings {
			if s.Key == key {
				return s
			}
		}
	}
	return Setting{}
}

// A Fault is an error in a line of a file.
type Fault struct {
	File string
	Line int
	Text string
}

func (f *Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// Faults is the error for a file that is valid YAML but has faults.
type Faults struct {
	All  []*Fault // in the order of the file
	Rest *File    // the parts without faults, for further checks
}

func (f *Faults) Error() string { return errors.Join(f.Unwrap()...).Error() }

// Unwrap returns the faults.
func (f *Faults) Unwrap() []error {
	all := make([]error, len(f.All))
	for i, one := range f.All {
		all[i] = one
	}
	return all
}

// maxFile bounds the size of a file.
const maxFile = 4 << 20

// Parse reads a firn.yaml: a mapping of known keys, which may be nested, and
// sequencers with templates. It reports all faults at once, each with the name
// of the file and the line: the error is *Faults, unless the file is not YAML.
func Parse(data []byte, name string, known []string) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, maxFile>>20)
	}
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	p := &parser{f: &File{Name: name}, known: known}
	var more yaml.Node
	if d.Decode(&more) == nil {
		p.fault(&more, "second YAML document: put all settings into one")
	}
	if doc.Kind != 0 {
		p.mapping(doc.Content[0], "")
	}
	if len(p.faults) > 0 {
		slices.SortStableFunc(p.faults, func(a, b *Fault) int { return a.Line - b.Line })
		return nil, &Faults{All: p.faults, Rest: p.f}
	}
	return p.f, nil
}

type parser struct {
	f      *File
	known  []string
	faults []*Fault
}

func (p *parser) fault(n *yaml.Node, format string, args ...any) {
	p.faults = append(p.faults, &Fault{p.f.Name, n.Line, fmt.Sprintf(format, args...)})
}

// mapping reads the keys below a path.
func (p *parser) mapping(n *yaml.Node, path string) {
	content := p.content(n, "%s: expected KEY: VALUE", cmp.Or(path, "the file"))
	seen := make(map[string]int)
	for i := 0; i+1 < len(content); i += 2 {
		k, v := content[i], content[i+1]
		if line, ok := seen[k.Value]; ok {
			p.fault(k, "%s is already on line %d", k.Value, line)
			continue
		}
		seen[k.Value] = k.Line
		key := k.Value
		if path != "" {
			key = path + "." + key
		}
		switch {
		case key == "sequencers":
			p.sequencers(v)
		case slices.Contains(p.known, key):
			p.setting(key, v)
		case slices.ContainsFunc(p.known, func(known string) bool { return strings.HasPrefix(known, key+".") }):
			p.mapping(v, key)
		default:
			p.fault(k, "unknown key %q", key)
		}
	}
}

// resolved returns the node that an alias refers to.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// content returns the keys and values of a mapping in turn. null is a mapping
// without keys; any other node is a fault.
func (p *parser) content(n *yaml.Node, format string, args ...any) []*yaml.Node {
	n = resolved(n)
	if n.Kind == yaml.MappingNode {
		return n.Content
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!null" {
		p.fault(n, format, args...)
	}
	return nil
}

// setting records a value.
func (p *parser) setting(key string, v *yaml.Node) {
	s := Setting{Key: key, Line: v.Line}
	v = resolved(v)
	values := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		values = v.Content
	}
	for _, one := range values {
		one = resolved(one)
		if one.Kind != yaml.ScalarNode || one.Tag == "!!null" {
			p.fault(one, "%s needs a value", key)
			return
		}
		s.Values = append(s.Values, one.Value)
	}
	p.f.Settings = append(p.f.Settings, s)
}

// templateKeys are the keys of a template.
const templateKeys = "layout, max-ahead, window, prefix, low-bits and nodes"

// sequencers reads the templates.
func (p *parser) sequencers(n *yaml.Node) {
	content := p.content(n, "sequencers: expected NAME: or a pattern with one *, followed by its keys")
	seen := make(map[string]int)
	for i := 0; i+1 < len(content); i += 2 {
		k, v := content[i], content[i+1]
		t := NamedTemplate{Pattern: k.Value, Line: k.Line, lines: make(map[string]int)}
		if !IsPattern(k.Value) {
			p.fault(k, "sequencers: %q is neither a sequencer name nor a pattern with one *", k.Value)
		}
		if line, ok := seen[t.Pattern]; ok {
			p.fault(k, "sequencers: %q is already on line %d", t.Pattern, line)
		} else {
			seen[t.Pattern] = t.Line
		}
		p.template(&t, v)
		p.f.Templates = append(p.f.Templates, t)
	}
}

// template reads a template.
func (p *parser) template(t *NamedTemplate, n *yaml.Node) {
	content := p.content(n, "sequencers: %q: expected a mapping with the keys %s", t.Pattern, templateKeys)
	fault := func(n *yaml.Node, format string, args ...any) {
		p.fault(n, "sequencers: %q: %s", t.Pattern, fmt.Sprintf(format, args...))
	}
	for i := 0; i+1 < len(content); i += 2 {
		k, v := content[i], content[i+1]
		if t.lines[k.Value] != 0 {
			fault(k, "%s is given twice", k.Value)
		}
		t.lines[k.Value] = v.Line
		v = resolved(v)
		if v.Kind != yaml.ScalarNode || v.ShortTag() == "!!null" {
			fault(v, "%s must be a single value", k.Value)
			continue
		}
		var err error
		switch k.Value {
		case "layout":
			if t.Layout, err = firn.ParseLayout(v.Value); err == nil && t.Layout.ReadOnly() {
				err = fmt.Errorf("%s is only for reading IDs", v.Value)
			}
			if t.unknown = err != nil; t.unknown {
				t.Layout = firn.Layout{}
			}
		case "max-ahead":
			var d time.Duration
			if d, err = duration(v.Value); err == nil {
				t.MaxAhead = &d
			}
		case "window":
			if t.Window, err = duration(v.Value); err == nil && t.Window == 0 {
				err = errors.New("it must be more than 0; leave it out for the default")
			}
		case "prefix":
			t.Prefix, err = v.Value, typed.CheckPrefix(v.Value)
		case "low-bits":
			t.LowBits, err = ParseLowBits(v.Value)
		case "nodes":
			t.Nodes, err = ParseNodes(v.Value)
		default:
			fault(k, "unknown key %q: the keys of a sequencer are %s", k.Value, templateKeys)
			continue
		}
		if err != nil {
			text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "firn: "), "typed: ")
			fault(v, "%s: %s", k.Value, text)
		}
	}
	if t.Nodes != nil && !t.Layout.IsZero() {
		if err := t.Nodes.Check(t.Layout); err != nil {
			fault(resolved(n), "%s", strings.TrimPrefix(err.Error(), "grant: "))
			t.Nodes = nil
		}
	}
}

// CheckTime returns an error if no ID of a layout can be made at a time.
func CheckTime(l firn.Layout, now time.Time) error {
	if l.IsZero() || l.ReadOnly() {
		return nil
	}
	if l.Epoch().After(now) {
		return fmt.Errorf("layout %s: no ID can be made before its epoch, %s", l, l.Epoch().UTC().Format(time.RFC3339))
	}
	if end := l.Last(); end.Before(now) {
		return fmt.Errorf("layout %s: its time range ended at %s: choose more time bits or, for a sequencer that was never used, a later epoch", l, end.UTC().Format(time.RFC3339))
	}
	return nil
}

// Check finds templates with which no sequencer can be created. usual supplies
// what they leave out: Layout, MaxAhead and node IDs. A zero Layout there means
// that it is unknown.
func (f *File) Check(usual Template, now time.Time) (all []*Fault) {
	for _, t := range f.Templates {
		fault := func(key, format string, args ...any) {
			all = append(all, &Fault{f.Name, cmp.Or(t.lines[key], t.Line), fmt.Sprintf("sequencers: %q: %s", t.Pattern, fmt.Sprintf(format, args...))})
		}
		layout, ahead, window := cmp.Or(t.Layout, usual.Layout), cmp.Or(t.MaxAhead, usual.MaxAhead), &t.Window
		unknown := t.unknown || layout.IsZero()
		if unknown { // report what is invalid for every layout
			layout = firn.Default()
			if ahead == nil {
				ahead = new(time.Duration)
			}
		}
		if t.Window == 0 {
			window = nil
		}
		if err := CheckTime(t.Layout, now); err != nil {
			fault("layout", "%s", err)
		}
		c, err := grant.DefaultConfig(nil, layout, ahead, window)
		if err == nil && !unknown && t.LowBits != 0 {
			c.LowBits = t.LowBits
			if err := c.Check(); err != nil {
				fault("low-bits", "%s", strings.TrimPrefix(err.Error(), "grant: "))
			}
		}
		if err != nil {
			key := "window"
			if window == nil {
				key = "max-ahead"
			}
			fault(key, "%s", strings.TrimPrefix(err.Error(), "grant: "))
		}
		if r := cmp.Or(t.Nodes, usual.Nodes); r != nil && !unknown {
			if err := r.Check(layout); err != nil {
				fault("nodes", "%s", strings.TrimPrefix(err.Error(), "grant: "))
			}
		}
	}
	return all
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 200ms or 60s", text)
	}
	return d, nil
}

// ParseLowBits reads how many low bits of IDs are even: even:K.
func ParseLowBits(text string) (int, error) {
	number, ok := strings.CutPrefix(text, "even:")
	k, err := strconv.Atoi(number)
	if !ok || err != nil || k < 1 {
		return 0, fmt.Errorf("%q is not even:K, such as even:4 for sharding by id %% 16", text)
	}
	return k, nil
}

// ParseNodes reads a range of node IDs, LO..HI, both ends included.
func ParseNodes(text string) (*grant.Range, error) {
	a, b, ok := strings.Cut(text, "..")
	lo, e1 := strconv.ParseUint(a, 10, 64)
	hi, e2 := strconv.ParseUint(b, 10, 64)
	switch {
	case !ok || e1 != nil || e2 != nil:
		return nil, fmt.Errorf("%q is not LO..HI, such as 0..511: give both ends, so that two clusters cannot overlap unnoticed", text)
	case lo > hi:
		return nil, fmt.Errorf("%q is not LO..HI: %d is above %d", text, lo, hi)
	}
	return &grant.Range{Lo: lo, Hi: hi}, nil
}

// Template returns the template for a name: that of the name itself, or of the
// best matching pattern (see Match), or the default. If none of them exists it
// returns the zero NamedTemplate.
func (f *File) Template(name string) (NamedTemplate, error) {
	patterns := make([]string, 0, len(f.Templates))
	for _, t := range f.Templates {
		patterns = append(patterns, t.Pattern)
	}
	pattern, ok, err := Match(patterns, name)
	if err != nil {
		return NamedTemplate{}, err
	}
	if !ok {
		pattern = DefaultTemplate
	}
	for _, t := range f.Templates {
		if t.Pattern == pattern {
			return t, nil
		}
	}
	return NamedTemplate{}, nil
}
