package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

var known = []string{"listen", "store", "tls.cert", "tls.key", "limits.connections"}

func TestParse(t *testing.T) {
	f, err := Parse([]byte(`
listen: [127.0.0.1:3476, "unix:/run/firn"]
tls:
  cert: a.crt
  key: a.key
limits: {connections: 5}
sequencers:
  default:
    layout: default
  "orders-*": {layout: hazelcast, max-ahead: 15s, window: 60s, nodes: 0..511}
  invoices: {prefix: invoice, layout: "js53,even=4"}
  empty:
`), "firn.yaml", known)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]Setting{
		"listen":   {[]string{"127.0.0.1:3476", "unix:/run/firn"}, 2},
		"tls.cert": {[]string{"a.crt"}, 4}, "tls.key": {[]string{"a.key"}, 5}, "limits.connections": {[]string{"5"}, 6},
	} {
		if got := f.Setting(key); !slices.Equal(got.Values, want.Values) || got.Line != want.Line || len(f.Settings) != 4 {
			t.Errorf("%s is %v, want %v, of %v", key, got, want, f.Settings)
		}
	}
	orders, err := f.Template("orders-1")
	if err != nil || orders.Layout.String() != "hazelcast" || *orders.MaxAhead != 15*time.Second || orders.Window != time.Minute || orders.Nodes == nil || orders.Nodes.Hi != 511 {
		t.Errorf("%+v, %v", orders, err)
	}
	if t1, err := f.Template("invoices"); err != nil || t1.Prefix != "invoice" || t1.Layout.String() != "js53,even=4" {
		t.Errorf("%+v, %v", t1, err)
	}
	if other, err := f.Template("users"); err != nil || other.Pattern != "default" {
		t.Errorf("%+v, %v", other, err)
	}
	if other, err := f.Template("empty"); err != nil || !other.Layout.IsZero() || other.Pattern != "empty" {
		t.Errorf("%+v, %v", other, err)
	}
	for _, text := range []string{"", "# nothing", "sequencers:", "tls:"} {
		if f, err := Parse([]byte(text), "f", known); err != nil || len(f.Settings)+len(f.Templates) != 0 {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
	f = must.Get(Parse([]byte("sequencers: {'a*': , '*a': }"), "f", known))(t)
	if _, err := f.Template("aba"); err == nil {
		t.Error("an ambiguous name has a template")
	}
}

func TestParseFaults(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"[1]", "f:1: unexpected !!seq"},
		{"a: [", "f:1: did not find"},
		{"stroe: x", `f:1: unknown key "stroe"`},
		{"tls: {crt: x}", `f:1: unknown key "tls.crt"`},
		{"store: a\nstore: b", "f:2: mapping key \"store\" already defined at line 1"},
		{"store:", "f:1: store needs a value"},
		{"store: {a: b}", "f:1: store needs a value"},
		{"---\na: 1\n---\nb: 2", "second YAML document"},
		{"sequencers: [a]", "f:1: sequencers:"},
		{"sequencers: {'*a*': }", "one *"},
		{"sequencers:\n  a: 5", `f:2: sequencers: "a": expected KEY: VALUE`},
		{"sequencers:\n  a: {}\n  a: {}", `f:3: mapping key "a" already defined at line 2`},
		{"sequencers:\n  a:\n    layuot: x", `f:3: sequencers: "a": layuot: unknown key: the keys of a sequencer are layout`},
		{"sequencers:\n  a:\n    layout: defualt", "f:3: sequencers: \"a\": layout: "},
		{"sequencers:\n  a:\n    layout: ksuid", "f:3: sequencers: \"a\": layout: IDs of layout ksuid have 160 bits: they can be read but not made"},
		{"sequencers:\n  a:\n    window: 60", `f:3: sequencers: "a": window: "60" is not a duration`},
		{"sequencers:\n  a:\n    max-ahead: -1s", `f:3: sequencers: "a": max-ahead: "-1s" is not a duration`},
		{"sequencers:\n  a:\n    prefix: Order", `f:3: sequencers: "a": prefix: prefix "Order" has 'O' at offset 0`},
		{"sequencers:\n  a:\n    low-bits: even:4", `f:3: sequencers: "a": low-bits: unknown key`},
		{"sequencers:\n  a:\n    nodes: 5", `f:3: sequencers: "a": nodes: "5" is not LO..HI`},
		{"sequencers:\n  a:\n    nodes: 6..5", `f:3: sequencers: "a": nodes: "6..5" is not LO..HI`},
		{"sequencers:\n  a: {prefix: null}", "f:2: sequencers: \"a\": prefix: it must be a single value"},
		{"sequencers:\n  a: {window: 0s}", "f:2: sequencers: \"a\": window: it must be more than 0"},
		{"sequencers:\n  'bad name': {layout: nope,\n    window: x,\n    nodes: 9..1}",
			"f:2: sequencers: \"bad name\" is neither a sequencer name nor a pattern with one *\nf:2: sequencers: \"bad name\": layout: "},
		{"sequencers:\n  'bad name': {layout: nope,\n    window: x,\n    nodes: 9..1}", "\nf:3: sequencers: \"bad name\": window: \"x\" is not a duration such as 200ms or 60s\nf:4: sequencers: \"bad name\": nodes: \"9..1\""},
		{"stroe: a\nsequencers:\n  a: {window: x}", "f:1: unknown key \"stroe\"\nf:3: sequencers: \"a\": window:"},
	} {
		if f, err := Parse([]byte(test.text), "f", known); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %+v, %v, want %q", test.text, f, err, test.want)
		}
	}
}

// TestCheck: Check finds templates with which nothing can be created, taking
// defaults into account.
func TestCheck(t *testing.T) {
	wide := sequencer.Options{Layout: firn.MustParseLayout("hazelcast")}
	long := 5 * time.Second
	for _, tt := range []struct {
		text     string
		defaults sequencer.Options
		want     string // "" for a valid file
	}{
		{"a: {layout: hazelcast, window: 60s, nodes: 0..65535}", sequencer.Options{}, ""},
		{"a:", sequencer.Options{}, ""},
		{"a: {max-ahead: 1h}", sequencer.Options{}, ""},
		{"a:\n    window: 1ms", sequencer.Options{}, `f:2: sequencers: "a": the window is 1ms`},
		{"a: {max-ahead: 999h}\n  b: {max-ahead: 9999h}", sequencer.Options{}, `f:3: sequencers: "b": max-ahead is 9999h`},
		{"a: {max-ahead: 1us}", sequencer.Options{}, `f:2: sequencers: "a": max-ahead is 1µs`},
		{"a: {window: 2s}", sequencer.Options{}, ""},
		{"a: {window: 2s}", sequencer.Options{MaxAhead: &long}, `f:2: sequencers: "a": the window is 2s`},
		{"a: {window: 1s}", wide, `f:2: sequencers: "a": the window is 1s`},
		{"a: {window: 1s, max-ahead: 1ms}", wide, ""},
		{"a: {nodes: 0..4000}", sequencer.Options{}, `f:2: sequencers: "a": node IDs 0..4000 do not fit layout default, which has 0..1023`},
		{"a: {nodes: 0..4000}", wide, ""},
		{"a: {layout: default}", sequencer.Options{Layout: wide.Layout, Nodes: &grant.NodeRange{Hi: 4000}}, `f:2: sequencers: "a": node IDs 0..4000 do not fit layout default`},
	} {
		f := must.Get(Parse([]byte("sequencers:\n  "+tt.text), "f", known))(t)
		if tt.defaults.Layout.IsZero() {
			tt.defaults.Layout = firn.Default()
		}
		all := f.Check(tt.defaults, importNow)
		if tt.want == "" && len(all) > 0 || tt.want != "" && (len(all) != 1 || !strings.HasPrefix(all[0].Error(), tt.want)) {
			t.Errorf("%q: %v, want %q", tt.text, all, tt.want)
		}
	}
}

// bombs are small files that expand to a lot of data.
var bombs = map[string]string{
	"aliases":       "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nlisten: *g\n",
	"merges":        "a: &a {x: 1}\nb: &b {<<: [*a,*a,*a,*a,*a,*a,*a,*a]}\nc: &c {<<: [*b,*b,*b,*b,*b,*b,*b,*b]}\nd: &d {<<: [*c,*c,*c,*c,*c,*c,*c,*c]}\nsequencers: {<<: *d}\nhazelcast: {<<: [*d,*d,*d,*d,*d,*d,*d,*d]}\n",
	"itself":        "sequencers: &a {x: *a}\n",
	"merges itself": "hazelcast: &a {<<: *a}\nlisten: &b [*b]\n",
	"depth":         strings.Repeat("[", 200_000),
	"flow depth":    strings.Repeat("{a: ", 200_000),
	"block depth":   strings.Repeat("- ", 200_000) + "x\n",
	"entities":      `<!DOCTYPE x [<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><hazelcast><flake-id-generator name="a"><prefetch-count>&c;</prefetch-count></flake-id-generator></hazelcast>`,
	"external":      `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><hazelcast><flake-id-generator name="a"><prefetch-count>&a;</prefetch-count></flake-id-generator></hazelcast>`,
	"elements":      "<hazelcast>" + strings.Repeat("<a>", 200_000),
	"attributes":    "<hazelcast " + strings.Repeat(`a="b" `, 100_000) + ">",
	"comment":       "<hazelcast><!--" + strings.Repeat("-", 1<<20),
}

// TestYAMLBombs: a file that expands to much more than its size is refused,
// and nothing outside of the file is read.
func TestYAMLBombs(t *testing.T) {
	for what, text := range bombs {
		if f, err := Parse([]byte(text), "f", known); err == nil {
			t.Errorf("firn.yaml, %s: %+v, want an error", what, f)
		} else if len(err.Error()) > 10_000 {
			t.Errorf("firn.yaml, %s: an error of %d bytes", what, len(err.Error()))
		}
		i, err := ImportHazelcast([]byte(text), "f", importNow)
		if err == nil && (len(i.YAML) > 10_000 || strings.Contains(i.YAML, "root:")) {
			t.Errorf("import, %s: %.100s", what, i.YAML)
		}
		if err == nil && what != "aliases" && what != "elements" && what != "attributes" {
			t.Errorf("import, %s: no error: %+v", what, i)
		}
	}
}

// TestCutFile: a file that begins with --- is read as a whole, or not at all.
func TestCutFile(t *testing.T) {
	const text = "# ours\n---\nlog:\n  level: info\nsequencers:\n  orders:\n    max-ahead: 100ms\n    nodes: 0..511\n..."
	for n := len("# ours\n---"); n < len(text); n++ {
		if _, err := Parse([]byte(text[:n]), "f", []string{"log.level"}); err == nil {
			t.Errorf("%d of %d bytes are read:\n%s", n, len(text), text[:n])
		}
	}
	for _, end := range []string{"", "\n", "\r\n", "\n\n"} {
		if f, err := Parse([]byte(text+end), "f", []string{"log.level"}); err != nil || len(f.Templates) != 1 || f.Templates[0].Nodes == nil {
			t.Errorf("the whole file: %v, %v", f, err)
		}
	}
}
