package config

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn"
)

// An Import is what a configuration of Hazelcast says, in Firn's words.
type Import struct {
	YAML string // a firn.yaml
	Left []string
}

// A flake is a Flake ID generator as Hazelcast configures it. The defaults and ranges
// are those of its FlakeIdGeneratorConfig.
type flake struct {
	name   string
	line   int
	values map[string]value
}

type value struct {
	text string
	line int
}

// flakeKeys are the elements, with their defaults and ranges.
var flakeKeys = []struct {
	name           string
	usual, lo, hi  int64
	isBool, client bool
}{
	{name: "prefetch-count", usual: 100, lo: 1, hi: 100_000, client: true},
	{name: "prefetch-validity-millis", usual: 600_000, lo: 0, hi: math.MaxInt64, client: true},
	{name: "epoch-start", usual: 1_514_764_800_000, lo: math.MinInt64, hi: math.MaxInt64},
	{name: "node-id-offset", usual: 0, lo: 0, hi: math.MaxInt64},
	{name: "bits-sequence", usual: 6, lo: 0, hi: 63},
	{name: "bits-node-id", usual: 16, lo: 0, hi: 63},
	{name: "allowed-future-millis", usual: 15_000, lo: 0, hi: math.MaxInt64},
	{name: "statistics-enabled", usual: 1, isBool: true},
}

// ImportHazelcast reads the flake-id-generators of a configuration of Hazelcast, in XML
// or YAML, of members or clients. All that is wrong is reported at once.
func ImportHazelcast(data []byte, name string) (*Import, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: it has more than %d MiB", name, maxFile>>20)
	}
	var all []flake
	var left []string
	var err error
	if trimmed := bytes.TrimLeft(data, " \t\r\n\xef\xbb\xbf"); bytes.HasPrefix(trimmed, []byte("<")) {
		all, left, err = readXML(data, name)
	} else {
		all, left, err = readYAML(data, name)
	}
	if err != nil {
		return nil, err
	}
	i := &Import{Left: left}
	var b strings.Builder
	b.WriteString("# Flake ID generators of Hazelcast, in Firn's words.\nsequencers:\n")
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there is no flake-id-generator in it", name)
	}
	var faults []error
	for _, f := range all {
		if err := i.add(&b, f, name); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	i.YAML = b.String()
	return i, nil
}

// add writes one generator.
func (i *Import) add(b *strings.Builder, f flake, file string) error {
	var faults []error
	number := make(map[string]int64)
	for _, k := range flakeKeys {
		v, given := f.values[k.name]
		n, err := k.usual, error(nil)
		switch {
		case !given:
		case k.isBool:
			var set bool
			if set, err = strconv.ParseBool(v.text); err != nil {
				err = fmt.Errorf("%q is true or false", v.text)
			} else if !set {
				n = 0
			}
		default:
			if n, err = strconv.ParseInt(v.text, 10, 64); err != nil || n < k.lo || n > k.hi {
				err = fmt.Errorf("%q is no number from %d to %d", v.text, k.lo, k.hi)
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %s of %s: %w", file, v.line, k.name, f.name, err))
		}
		number[k.name] = n
	}
	seq, node := number["bits-sequence"], number["bits-node-id"]
	if len(faults) == 0 && seq+node >= 63 {
		faults = append(faults, fmt.Errorf("%s:%d: %s: bits-sequence %d and bits-node-id %d leave no bit for the time", file, f.line, f.name, seq, node))
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	layout := "hazelcast"
	if seq != 6 || node != 16 {
		layout += fmt.Sprintf(",node-bits=%d,seq-bits=%d", node, seq)
	}
	if epoch := number["epoch-start"]; epoch != 1_514_764_800_000 {
		layout += ",epoch=" + strconv.FormatInt(epoch, 10)
	}
	if _, err := firn.ParseLayout(layout); err != nil {
		return fmt.Errorf("%s:%d: %s: %s", file, f.line, f.name, strings.TrimPrefix(err.Error(), "firn: "))
	}
	fmt.Fprintf(b, "  %q:\n    layout: %q\n", f.name, layout)
	if ahead := number["allowed-future-millis"]; ahead != 15_000 {
		if ahead > int64(math.MaxInt64/time.Millisecond) {
			return fmt.Errorf("%s:%d: allowed-future-millis of %s: %d is too much", file, f.line, f.name, ahead)
		}
		fmt.Fprintf(b, "    max-ahead: %v\n", time.Duration(ahead)*time.Millisecond)
	}
	if offset := number["node-id-offset"]; offset != 0 {
		last := int64(1)<<node - 1
		if offset > last {
			return fmt.Errorf("%s:%d: node-id-offset of %s: %d is beyond %d, the last node of %d bits", file, f.line, f.name, offset, last, node)
		}
		fmt.Fprintf(b, "    nodes: %d..%d # node-id-offset; give the other cluster 0..%d, or less\n", offset, last, offset-1)
	}
	_, count := f.values["prefetch-count"]
	_, validity := f.values["prefetch-validity-millis"]
	if count || validity {
		i.Left = append(i.Left, fmt.Sprintf("%s: prefetch-count %d and prefetch-validity-millis %d are settings of clients: firn.PrefetchOptions{Count: %d, Validity: %v} in client.Config",
			f.name, number["prefetch-count"], number["prefetch-validity-millis"], number["prefetch-count"], time.Duration(min(number["prefetch-validity-millis"], math.MaxInt64/int64(time.Millisecond)))*time.Millisecond))
	}
	if number["statistics-enabled"] == 0 {
		i.Left = append(i.Left, fmt.Sprintf("%s: statistics-enabled false: Firn's statistics cost nothing, and are always on", f.name))
	}
	return nil
}

// set notes a value of a generator.
func (f *flake) set(key string, v value, left *[]string) {
	for _, k := range flakeKeys {
		if k.name == key {
			f.values[key] = v
			return
		}
	}
	*left = append(*left, fmt.Sprintf("line %d: %s of %s has no counterpart", v.line, key, f.name))
}

// readXML reads Hazelcast's XML. Names count without their name spaces.
func readXML(data []byte, file string) (all []flake, left []string, err error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = true
	line := func() int { n, _ := d.InputPos(); return n }
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, left, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch {
			case depth == 0 && t.Name.Local != "hazelcast" && t.Name.Local != "hazelcast-client":
				return nil, nil, fmt.Errorf("%s:%d: the root is %s: it is hazelcast or hazelcast-client", file, line(), t.Name.Local)
			case depth == 0:
				depth++
			case t.Name.Local == "flake-id-generator":
				f := flake{name: DefaultTemplate, line: line(), values: make(map[string]value)}
				for _, a := range t.Attr {
					if a.Name.Local == "name" {
						f.name = a.Value
					}
				}
				if err := f.readXML(d, &left, line); err != nil {
					return nil, nil, fmt.Errorf("%s: %w", file, err)
				}
				all = append(all, f)
			default:
				left = append(left, fmt.Sprintf("line %d: %s is not of Flake ID generators", line(), t.Name.Local))
				if err := d.Skip(); err != nil {
					return nil, nil, fmt.Errorf("%s: %w", file, err)
				}
			}
		case xml.EndElement:
			depth--
		}
	}
}

// readXML reads what is in a flake-id-generator.
func (f *flake) readXML(d *xml.Decoder, left *[]string, line func() int) error {
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			at := line()
			var text strings.Builder
			for done := false; !done; {
				inner, err := d.Token()
				if err != nil {
					return err
				}
				switch in := inner.(type) {
				case xml.CharData:
					text.Write(in)
				case xml.StartElement:
					if err := d.Skip(); err != nil {
						return err
					}
				case xml.EndElement:
					done = true
				}
			}
			f.set(t.Name.Local, value{strings.TrimSpace(text.String()), at}, left)
		case xml.EndElement:
			return nil
		}
	}
}

// readYAML reads Hazelcast's YAML.
func readYAML(data []byte, file string) (all []flake, left []string, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil, fmt.Errorf("%s: it is neither XML nor YAML of Hazelcast", file)
	}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		root := top[i+1]
		if !slices.Contains([]string{"hazelcast", "hazelcast-client"}, top[i].Value) {
			return nil, nil, fmt.Errorf("%s:%d: there is %q: it is hazelcast or hazelcast-client", file, top[i].Line, top[i].Value)
		}
		if root.Kind != yaml.MappingNode {
			continue
		}
		for j := 0; j+1 < len(root.Content); j += 2 {
			k, v := root.Content[j], root.Content[j+1]
			if k.Value != "flake-id-generator" {
				left = append(left, fmt.Sprintf("line %d: %s is not of Flake ID generators", k.Line, k.Value))
				continue
			}
			if v.Kind != yaml.MappingNode {
				return nil, nil, fmt.Errorf("%s:%d: flake-id-generator has names with their settings", file, v.Line)
			}
			for n := 0; n+1 < len(v.Content); n += 2 {
				f := flake{name: v.Content[n].Value, line: v.Content[n].Line, values: make(map[string]value)}
				settings := v.Content[n+1]
				for m := 0; settings.Kind == yaml.MappingNode && m+1 < len(settings.Content); m += 2 {
					key, val := settings.Content[m], settings.Content[m+1]
					f.set(key.Value, value{val.Value, val.Line}, &left)
				}
				all = append(all, f)
			}
		}
	}
	return all, left, nil
}
