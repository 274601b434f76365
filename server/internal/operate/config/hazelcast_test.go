package config

import (
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// importNow is the time of the imports.
var importNow = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

const hazelcastXML = `<?xml version="1.0"?>
<hazelcast xmlns="http://www.hazelcast.com/schema/config">
  <cluster-name>dev</cluster-name>
  <map name="a"><backup-count>1</backup-count></map>
  <flake-id-generator name="orders">
    <prefetch-count>200</prefetch-count>
    <prefetch-validity-millis>1000</prefetch-validity-millis>
    <epoch-start>1577836800000</epoch-start>
    <node-id-offset>512</node-id-offset>
    <bits-sequence>12</bits-sequence>
    <bits-node-id>10</bits-node-id>
    <allowed-future-millis>2000</allowed-future-millis>
    <statistics-enabled>false</statistics-enabled>
  </flake-id-generator>
  <flake-id-generator name="plain*"/>
</hazelcast>`

const hazelcastYAML = `hazelcast:
  network: {port: 5701}
  flake-id-generator:
    orders:
      prefetch-count: 200
      prefetch-validity-millis: 1000
      epoch-start: 1577836800000
      node-id-offset: 512
      bits-sequence: 12
      bits-node-id: 10
      allowed-future-millis: 2000
      statistics-enabled: false
    plain*: {}
`

// TestImport: XML and YAML give the same result, which is a firn.yaml.
func TestImport(t *testing.T) {
	var before string
	for name, text := range map[string]string{"xml": hazelcastXML, "yaml": hazelcastYAML} {
		i, err := ImportHazelcast([]byte(text), name, importNow)
		if err != nil {
			t.Fatal(name, err)
		}
		if before != "" && i.YAML != before {
			t.Errorf("XML and YAML are not the same:\n%s\n%s", before, i.YAML)
		}
		before = i.YAML
		f, err := Parse([]byte(i.YAML), "imported", known)
		if err != nil {
			t.Fatalf("%v:\n%s", err, i.YAML)
		}
		orders, _ := f.Template("orders")
		if orders.Layout.String() != "hazelcast,node-bits=10,seq-bits=12,epoch=2020-01-01T00:00:00Z" || *orders.MaxAhead != 2*time.Second || *orders.Nodes != (grant.NodeRange{Lo: 512, Hi: 1023}) {
			t.Errorf("%+v from\n%s", orders, i.YAML)
		}
		plain, _ := f.Template("plain7")
		if plain.Layout.String() != "hazelcast" || plain.Nodes != nil || plain.MaxAhead != nil {
			t.Errorf("%+v", plain)
		}
		left := strings.Join(i.Notes, "\n")
		if want := `"orders": not settings of a sequencer: prefetch-count 200, prefetch-validity-millis 1000, statistics-enabled false`; !strings.Contains(left, want) {
			t.Errorf("%s: what is left is\n%s\nwant %q", name, left, want)
		}
	}
}

func TestImportFaults(t *testing.T) {
	in := func(inner string) string {
		return "<hazelcast>\n<flake-id-generator name=\"a\">\n" + inner + "\n</flake-id-generator></hazelcast>"
	}
	for _, test := range []struct{ text, want string }{
		{"<other/>", "f: the root element is other"},
		{"<hazelcast>", "f:1: unexpected EOF"},
		{"other: {}", "f: not a Hazelcast configuration"},
		{"text", "f:1: unexpected !!str"},
		{in("<bits-node-id>64</bits-node-id>"), `f: generator "a": bits-node-id: "64" is not a number from 0 to 63`},
		{in("<bits-node-id>40</bits-node-id><bits-sequence>30</bits-sequence>"), "f: generator \"a\": bits-sequence 30 and bits-node-id 40 leave no bits for the time"},
		{in("<node-id-offset>65536</node-id-offset>"), "f: generator \"a\": node IDs 65536..65535: the first must not exceed the last"},
		{in("<epoch-start>${epoch}</epoch-start>"), `f: generator "a": epoch-start: "${epoch}" is not a number`},
		{in("<epoch-start>4102444800000</epoch-start>"), "before the layout's epoch 2100-01-01T00:00:00Z"},
		{in("<bits-node-id>20</bits-node-id><bits-sequence>12</bits-sequence><epoch-start>0</epoch-start>"), "its time ended at 1970-01-25T20:31:23.648Z"},
		{in("<allowed-future-millis>9223372036854775807</allowed-future-millis>"), "allowed-future-millis"},
		{in("<bits-node-id>3</bits-node-id><bits-node-id>4</bits-node-id>"), "f: generator \"a\": bits-node-id is given twice"},
		{`<hazelcast><flake-id-generator name="a"/><flake-id-generator name="a"/></hazelcast>`, `f: generator "a" is configured twice`},
		{`<hazelcast><flake-id-generator name="a b"/><flake-id-generator name="a/b"/></hazelcast>`, `generator "a b" would become "a-b" too`},
		{`<hazelcast><flake-id-generator name="a*b*"/></hazelcast>`, "at most one *"},
		{`<hazelcast><flake-id-generator name="${name}"/></hazelcast>`, "the name has a property of the Java process"},
		{`<hazelcast><flake-id-generator name="日本"/></hazelcast>`, "needs an ASCII letter"},
		{`<hazelcast><flake-id-generator name="/default"/></hazelcast>`, "the template of all other names"},
		{`<hazelcast><flake-id-generator name="` + strings.Repeat("x", 129) + `"/></hazelcast>`, "up to 128 characters"},
		{"hazelcast:\n  flake-id-generator:\n    a: {}\n    a: {}\n", "f:4: mapping key \"a\" already defined at line 3"},
		{"hazelcast:\n  flake-id-generator:\n    a:\n      bits-node-id: 3\n      bits-node-id: 4\n", "f:5: mapping key \"bits-node-id\" already defined at line 4"},
		{`<hazelcast><import resource="a.xml"/></hazelcast>`, "f: no Flake ID generator found; it imports files that may have some: a.xml"},
		{"\n<!-- -->\n", "f: no root element found"},
		{"<hazelcast>\n<a>\n</b></hazelcast>", "f:3: element <a> closed by </b>"},
		{"<hazelcast>\n<a>\xe9</a></hazelcast>", "f:2: invalid UTF-8"},
		{"hazelcast:\n  import:\n  - a.yaml\n", "f: no Flake ID generator found; it imports files that may have some: a.yaml"},
		{"hazelcast:\n  flake-id-generator:\n    a:\n      bits-node-id:\n", `f: generator "a": bits-node-id: "" is not`},
		{"hazelcast:\n  flake-id-generator:\n    a: 7\n", "f:3: unexpected !!int"},
		{"hazelcast:\n  flake-id-generator:\n    a: {bits-node-id: [1]}\n", "f:3: unexpected !!seq"},
		{"hazelcast:\n  import: {a: b}\n", "f:2: unexpected !!map"},
		{"hazelcast:\n  a: b\n  %c: d\n", "f:3: found "},
		{"hazelcast:\n  a: b\n c: d\n", "f:3: did not find expected key"},
		{"hazelcast:\n  a: b\n}\n", "f:3: did not find expected key"},
		{"hazelcast:\n  a: \xe9\n", "f:2: incomplete UTF-8"},
		{"hazelcast:\n  a: \x01\n", "f:2: control characters are not allowed"},
		{"hazelcast:\n  flake-id-generator:\n    a: *base\n", "f:3: unknown anchor 'base' referenced"},
	} {
		if i, err := ImportHazelcast([]byte(test.text), "f", importNow); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %+v, %v, want %q", test.text, i, err, test.want)
		}
	}
}

// TestImportForms: other notations have the same meaning.
func TestImportForms(t *testing.T) {
	xml := `<?xml version="1.0" encoding="UTF-8"?><hazelcast><!-- café --><flake-id-generator name="a"><bits-node-id>10</bits-node-id></flake-id-generator></hazelcast>`
	for name, text := range map[string]string{
		"utf-8": xml, "mark": "\xef\xbb\xbf" + xml, "latin": strings.Replace(xml, "UTF-8", "ISO-8859-1", 1),
		"prefix": `<hz:hazelcast xmlns:hz="x"><hz:flake-id-generator name="a"><hz:bits-node-id> 10 </hz:bits-node-id></hz:flake-id-generator></hz:hazelcast>`,
		"yaml":   "hazelcast: {flake-id-generator: {a: {bits-node-id: 10}}}",
		"alias":  "base: &base {bits-node-id: 10}\nhazelcast: {flake-id-generator: {a: *base}}",
		"value":  "n: &n 10\nhazelcast: {flake-id-generator: {a: {bits-node-id: *n}}}",
		"merge":  "base: &base {bits-node-id: 10}\nhazelcast: {flake-id-generator: {a: {<<: *base}}}",
		"hex":    "hazelcast: {flake-id-generator: {a: {bits-node-id: 0xA}}}",
	} {
		i, err := ImportHazelcast([]byte(text), "f", importNow)
		if err != nil || !strings.Contains(i.YAML, "  \"a\":\n    layout: \"hazelcast,node-bits=10,seq-bits=6\"\n") {
			t.Errorf("%s: %v, %+v", name, err, i)
		}
	}
}

// TestImportDefaults: as in Hazelcast, names without a generator have its
// default layout.
func TestImportDefaults(t *testing.T) {
	for _, text := range []string{"<hazelcast/>", "hazelcast: {}", "hazelcast:\n  flake-id-generator:\n", hazelcastXML} {
		i, err := ImportHazelcast([]byte(text), "f", importNow)
		if err != nil {
			t.Fatal(text, err)
		}
		f := must.Get(Parse([]byte(i.YAML), "imported", known))(t)
		if other, _ := f.Template("any-other"); other.Layout.String() != "hazelcast" {
			t.Errorf("%s: any-other has %v", text, other.Layout)
		}
	}
	i, err := ImportHazelcast([]byte(`<hazelcast><flake-id-generator name="default"><bits-node-id>9</bits-node-id></flake-id-generator></hazelcast>`), "f", importNow)
	if err != nil || strings.Count(i.YAML, "default") != 1 {
		t.Errorf("%v, %+v", err, i)
	}
}

// TestImportNotes: what an import leaves to the user is noted.
func TestImportNotes(t *testing.T) {
	for text, want := range map[string]string{
		`<hazelcast><map name="a"/><flake-id-generator name="my ids/2024@x"/></hazelcast>`:              `"my ids/2024@x" became "my-ids-2024-x"`,
		`<hazelcast><flake-id-generator name="n"><colour>red</colour></flake-id-generator></hazelcast>`: `"n": not settings of a sequencer: colour red`,
		`<hazelcast><flake-id-generator name="n"/><import resource="more.xml"/></hazelcast>`:            "f imports more.xml",
		`<hazelcast><security><client-permissions/></security></hazelcast>`:                             "permissions are not imported",
		"hazelcast: {security: {enabled: true}}":                                                        "permissions are not imported",
		"<hazelcast-client/>":                                                                           "has no layouts",
	} {
		if i, err := ImportHazelcast([]byte(text), "f", importNow); err != nil || len(i.Notes) != 1 || !strings.Contains(i.Notes[0], want) {
			t.Errorf("%s: %v, %+v, want one note, %q", text, err, i, want)
		}
	}
}

func TestCheckTime(t *testing.T) {
	for layout, want := range map[string]string{
		"default": "", "hazelcast": "", "hazelcast,epoch=2026-11-22T00:00:00Z": "", "hazelcast,epoch=2026-11-22T00:00:01Z": "before the layout's epoch",
		"bits=time:31.node:10.seq:10,unit=1ms,epoch=2026-01-01T00:00:00Z": "no time left",
	} {
		if err := CheckTime(firn.MustParseLayout(layout), importNow); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", layout, err, want)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(hazelcastXML))
	f.Add([]byte(hazelcastYAML))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := ImportHazelcast(data, "f", importNow)
		if (i == nil) == (err == nil) {
			t.Fatal(i, err)
		}
		if err == nil {
			file, err := Parse([]byte(i.YAML), "imported", known)
			if err != nil {
				t.Fatalf("%v:\n%s", err, i.YAML)
			}
			if faults := file.Check(sequencer.Options{Layout: firn.Default()}, importNow); len(faults) > 0 {
				t.Fatalf("%v:\n%s", faults, i.YAML)
			}
		}
	})
}
