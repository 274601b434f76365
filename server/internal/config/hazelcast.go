package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// An Import is a Hazelcast configuration converted to templates of sequencers.
type Import struct {
	YAML  string   // a firn.yaml
	Notes []string // what was left out or renamed, most important first
}

// A flake is a Flake ID generator as Hazelcast configures it. The defaults and
// ranges are those of FlakeIdGeneratorConfig.
type flake struct {
	name   string
	place  place
	values map[string]value
}

// A place is a line of a file.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

type value struct {
	text  string
	place place
}

// The importance of a note.
const (
	noteImport   = iota // other files, which may define generators
	noteSecurity        // permissions
	noteUnknown         // unknown keys of a generator, which Hazelcast ignores too
	noteName            // renamed generators
	noteClient          // settings of clients
	noteStatistics
	noteOther // settings that do not concern generators
)

type note struct {
	importance int
	text       string
}

type flakeKey struct {
	name          string
	usual, lo, hi int64
	isBool        bool
}

// flakeKeys lists the elements with their defaults and ranges.
var flakeKeys = []flakeKey{
	{name: "prefetch-count", usual: 100, lo: 1, hi: 100_000},
	{name: "prefetch-validity-millis", usual: 600_000, lo: math.MinInt64, hi: math.MaxInt64},
	{name: "epoch-start", usual: 1_514_764_800_000, lo: math.MinInt64, hi: math.MaxInt64},
	{name: "node-id-offset", usual: 0, lo: 0, hi: math.MaxInt64},
	{name: "bits-sequence", usual: 6, lo: 0, hi: 63},
	{name: "bits-node-id", usual: 16, lo: 0, hi: 63},
	{name: "allowed-future-millis", usual: 15_000, lo: 0, hi: math.MaxInt64},
	{name: "statistics-enabled", usual: 1, isBool: true},
}

// ImportHazelcast reads the Flake ID generators of a Hazelcast configuration,
// of members or clients, in XML or YAML. As in Hazelcast, a name without a
// generator has the defaults. Files that this one imports are noted but not
// read. Layouts must be usable at the time now. The result is a firn.yaml that
// Parse and Check accept. All faults are reported at once.
func ImportHazelcast(data []byte, name string, now time.Time) (*Import, error) {
	var r reader
	if err := r.file(data, name); err != nil {
		return nil, err
	}
	if len(r.flakes) == 0 && len(r.imports) > 0 {
		return nil, fmt.Errorf("%s: no Flake ID generator found; it imports files that may have some: %s", name, strings.Join(r.imports, ", "))
	}
	w := writer{now: now, names: make(map[string]flake)}
	w.text.WriteString("# Flake ID generators of Hazelcast as sequencers of Firn.\nsequencers:\n")
	var faults []error
	for _, f := range r.flakes {
		if err := w.flake(f); err != nil {
			faults = append(faults, err)
		}
	}
	if _, has := w.names[DefaultTemplate]; !has {
		fmt.Fprintf(&w.text, "  %q: # all other names, as in Hazelcast\n    layout: \"hazelcast\"\n", DefaultTemplate)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if r.client {
		w.notes = append(w.notes, note{noteImport, name + " configures a client, which has no layouts: import the configuration of the members too"})
	}
	notes := append(r.notes, w.notes...)
	if n := len(r.others); n > 0 {
		slices.Sort(r.others)
		all := slices.Compact(r.others)
		notes = append(notes, note{noteOther, fmt.Sprintf("settings that do not concern Flake ID generators (%d): %s", n, strings.Join(all, ", "))})
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(a.importance, b.importance) })
	i := &Import{YAML: w.text.String()}
	for _, n := range notes {
		i.Notes = append(i.Notes, n.text)
	}
	return i, nil
}

// A writer writes templates.
type writer struct {
	text  strings.Builder
	now   time.Time
	names map[string]flake // by template name
	notes []note
}

// numbers parses the values of a generator.
func (f *flake) numbers() (map[string]int64, error) {
	var faults []error
	all := make(map[string]int64)
	for _, k := range flakeKeys {
		v, given := f.values[k.name]
		n, err := k.usual, error(nil)
		switch {
		case !given:
		case strings.Contains(v.text, "${"):
			err = fmt.Errorf("%q is a property of the Java process: replace it with its value", v.text)
		case k.isBool:
			var set bool
			if set, err = strconv.ParseBool(v.text); err != nil {
				err = fmt.Errorf("%q is neither true nor false", v.text)
			} else if !set {
				n = 0
			}
		default:
			if n, err = strconv.ParseInt(strings.ReplaceAll(v.text, "_", ""), 0, 64); err != nil || n < k.lo || n > k.hi {
				err = fmt.Errorf("%q is not a number from %d to %d", v.text, k.lo, k.hi)
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s of %s: %w", v.place, k.name, f.name, err))
		}
		all[k.name] = n
	}
	return all, errors.Join(faults...)
}

// flake writes the template of one generator.
func (w *writer) flake(f flake) error {
	name, err := templateName(f.name)
	if err != nil {
		return fmt.Errorf("%s: %w", f.place, err)
	}
	if other, has := w.names[name]; has && other.name == f.name {
		return fmt.Errorf("%s: generator %q is already configured in %s", f.place, f.name, other.place)
	} else if has {
		return fmt.Errorf("%s: generators %q (%s) and %q would both become %q: rename one of them", f.place, other.name, other.place, f.name, name)
	}
	w.names[name] = f
	number, err := f.numbers()
	if err != nil {
		return err
	}
	layout, err := w.layout(number)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.place, f.name, err)
	}
	fmt.Fprintf(&w.text, "  %q:", name)
	if name != f.name {
		fmt.Fprintf(&w.text, " # %+q in Hazelcast", f.name)
		w.notes = append(w.notes, note{noteName, fmt.Sprintf("%q became %q: clients must use the new name", f.name, name)})
	}
	fmt.Fprintf(&w.text, "\n    layout: %q\n", layout)
	if ahead := number["allowed-future-millis"]; ahead != 15_000 {
		fmt.Fprintf(&w.text, "    max-ahead: %v\n", time.Duration(ahead)*time.Millisecond)
	}
	if offset := number["node-id-offset"]; offset != 0 {
		fmt.Fprintf(&w.text, "    nodes: %d..%d # node-id-offset; give the other cluster 0..%d, or less\n", offset, int64(1)<<number["bits-node-id"]-1, offset-1)
	}
	w.client(f, number)
	return nil
}

// client notes the settings of a generator that belong to clients.
func (w *writer) client(f flake, number map[string]int64) {
	_, count := f.values["prefetch-count"]
	_, validity := f.values["prefetch-validity-millis"]
	if count || validity {
		text := "Validity: -1, meaning no limit"
		if millis := number["prefetch-validity-millis"]; millis > 0 {
			text = fmt.Sprintf("Validity: %v", time.Duration(min(millis, math.MaxInt64/int64(time.Millisecond)))*time.Millisecond)
		}
		w.notes = append(w.notes, note{noteClient, fmt.Sprintf("%s: prefetch-count %d and prefetch-validity-millis %d are settings of clients: firn.PrefetchOptions{Count: %d, %s} in client.Config",
			f.name, number["prefetch-count"], number["prefetch-validity-millis"], number["prefetch-count"], text)})
	}
	if number["statistics-enabled"] == 0 {
		w.notes = append(w.notes, note{noteStatistics, fmt.Sprintf("%s: statistics-enabled false: Firn's statistics are always on", f.name)})
	}
}

// layout returns the layout of a generator, if sequencers can be created with
// it.
func (w *writer) layout(number map[string]int64) (string, error) {
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
	layout, err := firn.ParseLayout(text)
	if err == nil {
		err = CheckTime(layout, w.now)
	}
	if err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "firn: "))
	}
	millis := number["allowed-future-millis"]
	if millis > int64(math.MaxInt64/time.Millisecond) {
		return "", fmt.Errorf("allowed-future-millis %d is above %d", millis, int64(math.MaxInt64/time.Millisecond))
	}
	ahead := time.Duration(millis) * time.Millisecond
	if _, err := grant.DefaultConfig(nil, layout, &ahead, nil); err != nil {
		return "", fmt.Errorf("allowed-future-millis %d: %s", millis, strings.TrimPrefix(err.Error(), "grant: "))
	}
	if offset, last := number["node-id-offset"], int64(1)<<node-1; offset > last {
		return "", fmt.Errorf("node-id-offset %d is above %d, the last node ID of %d bits", offset, last, node)
	}
	return text, nil
}

// templateName converts a Hazelcast name, which may be any text, to the name or
// pattern of a template. Characters that are not allowed become -.
func templateName(name string) (string, error) {
	if strings.Contains(name, "${") {
		return "", fmt.Errorf("generator %q has a property of the Java process in its name: replace it with its value", name)
	}
	if strings.Count(name, "*") > 1 {
		return "", fmt.Errorf("generator %q: a pattern may have only one *; Hazelcast treats the second one as a plain character", name)
	}
	var b strings.Builder
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '*', b.Len() > 0 && strings.ContainsRune("._:-", c):
			b.WriteRune(c)
		case b.Len() > 0:
			b.WriteByte('-')
		}
	}
	text := b.String()
	switch {
	case text == "":
		return "", fmt.Errorf("generator %q: a name needs an ASCII letter or digit", name)
	case len(text) > 128:
		return "", fmt.Errorf("generator %q: a name has up to 128 characters", name)
	case !IsPattern(text):
		return "", fmt.Errorf("generator %q cannot be converted to a sequencer name or pattern", name)
	case text == DefaultTemplate && name != text:
		return "", fmt.Errorf("generator %q would become %q, which is the template of all other names: rename it", name, text)
	}
	return text, nil
}
