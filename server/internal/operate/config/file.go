package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/typed"
)

// A Setting is the value of a key as written.
type Setting struct {
	Values []string // one value, or the values of a list
	Line   int      // in the file
}

// A Template is how the sequencer of a name, or those of names that match a
// pattern, are created and opened. A field with its zero value changes nothing.
type Template struct {
	Pattern string
	Line    int // in the file

	Layout   firn.Layout
	MaxAhead *time.Duration
	Window   time.Duration
	Prefix   string
	Nodes    *grant.NodeRange
}

// Apply sets in c what the template has.
func (t *Template) Apply(c *sequencer.Options) {
	c.Layout = cmp.Or(t.Layout, c.Layout)
	c.MaxAhead = cmp.Or(t.MaxAhead, c.MaxAhead)
	c.Window = cmp.Or(t.Window, c.Window)
	c.Prefix = cmp.Or(t.Prefix, c.Prefix)
	c.Nodes = cmp.Or(t.Nodes, c.Nodes)
}

// defaultTemplate is the name of the template for names without another one.
const defaultTemplate = "default"

// A File is a parsed configuration.
type File struct {
	Name       string
	Settings   map[string]Setting // by key, such as tls.cert
	Templates  []Template
	Sequencers string // the templates, as YAML
}

// Setting returns the value of a key; its Line is 0 if the file has none.
func (f *File) Setting(key string) Setting {
	if f == nil {
		return Setting{}
	}
	return f.Settings[key]
}

// Parse reads a firn.yaml: a mapping of known keys, which may be nested, and
// sequencers with templates. It reports all unknown keys and invalid templates
// at once, each with the name of the file and the line.
func Parse(data []byte, name string, known []string) (*File, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := d.Decode(&doc)
	if err == nil {
		err = doc.Decode(new(map[string]any)) // finds repeated keys, and aliases that explode
	}
	if err != nil && err != io.EOF {
		return nil, YAMLError(name, data, err)
	}
	if err := d.Decode(new(yaml.Node)); err != io.EOF {
		return nil, fmt.Errorf("%s: second YAML document: put all settings into one", name)
	}
	if err := CheckWhole(data, name); err != nil {
		return nil, err
	}
	p := &parser{file: &File{Name: name, Settings: make(map[string]Setting)}, known: known}
	if doc.Kind != 0 {
		p.mapping(doc.Content[0], "")
	}
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults...)
	}
	return p.file, nil
}

// CheckWhole returns an error if a YAML file whose first line is --- does not
// have ... as its last one: only a part of it was copied, perhaps without the
// lines that restrict something. Comments and directives may come before the
// first line.
func CheckWhole(data []byte, name string) error {
	text := strings.TrimPrefix(string(data), "\ufeff") // as the decoder does
	first, lines := "", strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if first = strings.TrimSpace(line); first != "" && first[0] != '#' && first[0] != '%' {
			break
		}
	}
	if mark, _, _ := strings.Cut(first, " "); mark != "---" || strings.TrimRight(lines[len(lines)-1], "\r") == "..." {
		return nil
	}
	return fmt.Errorf("%s:%d: the file begins with --- and does not end with the line ...: it may be "+
		"incomplete; copy it again", name, len(lines))
}

// YAMLError returns an error of the decoder with the name of the file and the
// line, and without the types of Go in it.
func YAMLError(name string, data []byte, err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		if rest, ok := strings.CutPrefix(text, "line "); ok {
			number, text, _ := strings.Cut(rest, ": ")
			line, _ := strconv.Atoi(number)
			if fromZero.MatchString(text) {
				line = min(line+1, 1+bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n")))
			}
			return fmt.Errorf("%s:%d: %s", name, line, text)
		}
		return fmt.Errorf("%s:%d: %s", name, 1+bytes.Count(data[:faultIn(data, text)], []byte("\n")), text)
	}
	const most = 50 // a file of another kind has one in every line
	var all []error
	for i, text := range wrong.Errors {
		if i == most {
			all = append(all, fmt.Errorf("%s: and %d more", name, len(wrong.Errors)-most))
			break
		}
		text, _, _ = strings.Cut(strings.TrimPrefix(text, "line "), " not found in type ")
		text, _, _ = strings.Cut(text, " into ")
		text = strings.NewReplacer(": field ", ": unknown key ", "cannot unmarshal", "unexpected").Replace(text)
		all = append(all, errors.New(name+":"+text))
	}
	return errors.Join(all...)
}

// fromZero matches faults whose lines the decoder counts from zero: those of
// its parser, and not of its scanner. All lines may be where the wrong block
// begins.
var fromZero = regexp.MustCompile("^did not find expected (key|node content|'-' indicator|',' or|<)")

// faultIn returns the offset of a fault for which the decoder names no line: it
// is an alias, text that is not UTF-8, a control character, or in the first
// line.
func faultIn(data []byte, text string) int {
	if _, anchor, ok := strings.Cut(text, "anchor '"); ok {
		anchor, _, _ = strings.Cut(anchor, "'")
		return max(0, bytes.Index(data, []byte("*"+anchor)))
	}
	return max(0, bytes.IndexFunc(data, func(c rune) bool {
		return c == utf8.RuneError || unicode.IsControl(c) && !strings.ContainsRune("\t\r\n\u0085", c)
	}))
}

type parser struct {
	file   *File
	known  []string
	faults []error
}

func (p *parser) fault(line int, format string, args ...any) {
	p.faults = append(p.faults, p.file.fault(line, format, args...))
}

func (f *File) fault(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", f.Name, line, fmt.Sprintf(format, args...))
}

// mapping reads the keys below a path.
func (p *parser) mapping(n *yaml.Node, path string) {
	for k, v := range p.pairs(n, path) {
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
			p.fault(k.Line, "unknown key %q", key)
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

// pairs yields the keys and values of a mapping. null is a mapping without
// keys; any other node is a fault.
func (p *parser) pairs(n *yaml.Node, key string) iter.Seq2[*yaml.Node, *yaml.Node] {
	line := n.Line
	n = resolved(n)
	if n.Kind != yaml.MappingNode && n.ShortTag() != "!!null" {
		p.fault(line, "%s: expected KEY: VALUE", key)
		n = new(yaml.Node)
	}
	return func(yield func(k, v *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// setting records a value.
func (p *parser) setting(key string, v *yaml.Node) {
	s := Setting{Line: v.Line}
	v = resolved(v)
	values := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		values = v.Content
	}
	for _, one := range values {
		one = resolved(one)
		if one.Kind != yaml.ScalarNode || one.Tag == "!!null" {
			p.fault(s.Line, "%s needs a value", key)
			return
		}
		s.Values = append(s.Values, one.Value)
	}
	p.file.Settings[key] = s
}

// sequencers reads the templates.
func (p *parser) sequencers(n *yaml.Node) {
	for k, v := range p.pairs(n, "sequencers") {
		t := Template{Pattern: k.Value, Line: k.Line}
		if !IsPattern(k.Value) {
			p.fault(k.Line, "sequencers: %q is neither a sequencer name nor a pattern with one *", k.Value)
		}
		for k, v := range p.pairs(v, fmt.Sprintf("sequencers: %q", t.Pattern)) {
			v, err := resolved(v), errors.New("it must be a single value")
			if v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null" {
				err = t.Set(k.Value, v.Value)
			}
			if err != nil {
				p.fault(k.Line, "sequencers: %q: %s: %s", t.Pattern, k.Value, textfmt.Message(err))
			}
		}
		p.file.Templates = append(p.file.Templates, t)
	}
	var text strings.Builder
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	if err := out.Encode(map[string]*yaml.Node{"sequencers": resolved(n)}); err != nil {
		p.fault(n.Line, "sequencers: %v", err)
	}
	p.file.Sequencers = text.String()
}

// Set sets the value of a key of a template.
func (t *Template) Set(key, text string) (err error) {
	switch key {
	case "layout":
		if t.Layout, err = firn.ParseLayout(text); err == nil {
			err = t.Layout.CheckGenerator()
		}
	case "max-ahead":
		var d time.Duration
		d, err = duration(text)
		t.MaxAhead = &d
	case "window":
		if t.Window, err = duration(text); err == nil && t.Window == 0 {
			err = errors.New("it must be more than 0; leave it out for the default")
		}
	case "prefix":
		t.Prefix, err = text, typed.CheckPrefix(text)
	case "nodes":
		t.Nodes, err = ParseNodes(text)
	default:
		err = errors.New("unknown key: the keys of a sequencer are layout, max-ahead, window, prefix and nodes")
	}
	return err
}

// CheckTime returns an error if no ID of a layout can be made at a time.
func CheckTime(l firn.Layout, now time.Time) error {
	if l.IsZero() {
		return nil
	}
	if err := l.CheckTime(now); err != nil {
		return fmt.Errorf("layout %s: %w", l, textfmt.Plain(err))
	}
	return nil
}

// Check finds templates with which no sequencer can be created. c is what they
// are applied to, as in server.Config.
func (f *File) Check(c sequencer.Options, now time.Time) (all []error) {
	for _, t := range f.Templates {
		if err := t.check(c, now); err != nil {
			all = append(all, f.fault(t.Line, "sequencers: %q: %s", t.Pattern, textfmt.Message(err)))
		}
	}
	return all
}

// check is Check for one template.
func (t *Template) check(c sequencer.Options, now time.Time) error {
	t.Apply(&c)
	g := c.Config(nil)
	g.Nodes = c.Nodes
	return cmp.Or(g.Check(), CheckTime(t.Layout, now))
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%.40q is not a duration such as 200ms or 60s", text)
	}
	return d, nil
}

// ParseNodes reads a range of node IDs, LO..HI, both ends included.
func ParseNodes(text string) (*grant.NodeRange, error) {
	a, b, ok := strings.Cut(text, "..")
	lo, e1 := strconv.ParseUint(a, 10, 64)
	hi, e2 := strconv.ParseUint(b, 10, 64)
	switch {
	case !ok || e1 != nil || e2 != nil:
		return nil, fmt.Errorf("%q is not LO..HI, such as 0..511: give both ends, so that two clusters "+
			"cannot overlap unnoticed", text)
	case lo > hi:
		return nil, fmt.Errorf("%q is not LO..HI: %d is above %d", text, lo, hi)
	}
	return &grant.NodeRange{Lo: lo, Hi: hi}, nil
}

// Template returns the template for a name: that of the name itself, or of the
// best matching pattern (see Match), or the default. If none of them exists it
// returns the zero Template, which changes nothing.
func (f *File) Template(name string) (Template, error) {
	patterns := make([]string, 0, len(f.Templates))
	for _, t := range f.Templates {
		patterns = append(patterns, t.Pattern)
	}
	pattern, ok, err := Match(patterns, name)
	if err != nil {
		return Template{}, err
	}
	if !ok {
		pattern = defaultTemplate
	}
	for _, t := range f.Templates {
		if t.Pattern == pattern {
			return t, nil
		}
	}
	return Template{}, nil
}

// UnknownVars returns the variables of an environment that may be mistyped ones
// for keys. Those of Kubernetes for services are none, such as
// FIRN_SERVICE_HOST and FIRN_PORT_3476_TCP.
func UnknownVars(environ, known []string) (all []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		ofService := strings.HasSuffix(name, "_SERVICE_HOST") || strings.Contains(name, "_PORT")
		if strings.HasPrefix(name, "FIRN_") && !slices.Contains(known, name) && !ofService {
			all = append(all, name)
		}
	}
	return all
}
