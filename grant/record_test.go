package grant

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
)

func testConfig(t testing.TB) Config {
	t.Helper()
	return NewConfig(firn.MustParseLayout("default"), 30*time.Second)
}

func TestConfigCheck(t *testing.T) {
	good := testConfig(t)
	if err := good.Check(); err != nil {
		t.Fatalf("%+v: %v", good, err)
	}
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no layout", func(c *Config) { c.Layout = firn.Layout{} }, "no layout"},
		{"negative max-ahead", func(c *Config) { c.MaxAhead = -time.Second }, "max-ahead"},
		{"max-ahead not in ms", func(c *Config) { c.MaxAhead = time.Millisecond + 1 }, "whole milliseconds"},
		{"short window", func(c *Config) { c.Window = 2*c.MaxAhead - time.Millisecond }, "at least"},
		{"window not in ms", func(c *Config) { c.Window += 1 }, "whole milliseconds"},
		{"endless window", func(c *Config) { c.Window = 10 * maxWindow }, "no more than"},
	}
	for _, tt := range tests {
		c := good
		tt.change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Check() = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

// TestNewConfig: every layout that can be generated has a usable configuration.
func TestNewConfig(t *testing.T) {
	for p := range firn.Presets() {
		l := p.Layout
		if l.ReadOnly() {
			continue
		}
		for _, usual := range []time.Duration{0, time.Second, time.Hour} {
			if err := NewConfig(l, usual).Check(); err != nil {
				t.Errorf("NewConfig(%s, %v): %v", p.Name, usual, err)
			}
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "orders", "Orders.2026-a_b:c", "0", strings.Repeat("x", maxName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
		if err := CheckKey(nodeKey(name, 1<<48-1, 1<<48-1)); err != nil {
			t.Errorf("the key of a node of %q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".a", "-a", "a/b", "a b", "ü", "a\x00", strings.Repeat("x", maxName+1)} {
		if err := CheckName(name); err == nil {
			t.Errorf("CheckName(%q) is fine, want an error", name)
		}
	}
}

func TestNodeKey(t *testing.T) {
	key := nodeKey("orders", 42, 1023)
	if want := "v1/orders/n/0042"; key != want {
		t.Errorf("nodeKey = %q, want %q", key, want)
	}
	if node, err := nodeOf("orders", key); node != 42 || err != nil {
		t.Errorf("nodeOf(%q) = %d, %v", key, node, err)
	}
	for _, bad := range []string{"v1/orders/n/", "v1/orders/n/x", "v1/other/n/0042", "v1/orders/n/99999999999999999999"} {
		if node, err := nodeOf("orders", bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("nodeOf(%q) = %d, %v, want ErrDamaged", bad, node, err)
		}
	}
}

func TestRecords(t *testing.T) {
	c := newConfigRecord(testConfig(t))
	c.Nonce = "n"
	if got, err := decodeConfig("k", c.encode()); err != nil || got != c {
		t.Errorf("decode(encode(%+v)) = %+v, %v", c, got, err)
	}
	n := nodeRecord{Nonce: "n", Owner: "o", Until: 7, Wall: 5, State: flagHeld, Host: "h"}
	if got, err := decodeNode("k", n.encode()); err != nil || got != n {
		t.Errorf("decode(encode(%+v)) = %+v, %v", n, got, err)
	}
}

func TestRecordFaults(t *testing.T) {
	config := func(change func(*configRecord)) []byte {
		r := newConfigRecord(testConfig(t))
		change(&r)
		return r.encode()
	}
	node := func(change func(*nodeRecord)) []byte {
		r := nodeRecord{Nonce: "n", State: flagHeld}
		change(&r)
		return r.encode()
	}
	tests := []struct {
		name  string
		value []byte
		node  bool
		want  error
	}{
		{"no JSON", []byte("x"), true, ErrDamaged},
		{"cut", node(func(*nodeRecord) {})[:20], true, ErrDamaged},
		{"newer", []byte(`{"v":4,"nonce":"n","state":"held"}`), true, ErrNewerVersion},
		{"newer with other fields", []byte(`{"v":9,"lease":1}`), true, ErrNewerVersion},
		{"newer beyond every integer", []byte(`{"v":100000000000000000000}`), true, ErrNewerVersion},
		{"no version", []byte(`{}`), true, ErrDamaged},
		{"version null", []byte(`{"v":null}`), true, ErrDamaged},
		{"version with a point", []byte(`{"v":3.0}`), true, ErrDamaged},
		{"version in quotes", []byte(`{"v":"3"}`), true, ErrDamaged},
		{"version far below", []byte(`{"v":-100000000000000000000}`), true, ErrDamaged},
		{"negative version", []byte(`{"v":-1,"nonce":"n","state":"held"}`), true, ErrDamaged},
		{"unknown field", []byte(`{"v":3,"nonce":"n","state":"held","x":1}`), true, ErrDamaged},
		{"something after", append(node(func(*nodeRecord) {}), '1'), true, ErrDamaged},
		{"a brace after", append(node(func(*nodeRecord) {}), '}'), true, ErrDamaged},
		{"brackets after", append(node(func(*nodeRecord) {}), "]]] cut"...), true, ErrDamaged},
		{"unknown state", node(func(r *nodeRecord) { r.State = "on" }), true, ErrDamaged},
		{"no nonce", node(func(r *nodeRecord) { r.Nonce = "" }), true, ErrDamaged},
		{"endless mark", node(func(r *nodeRecord) { r.Until = 1 << 62 }), true, ErrDamaged},
		{"config newer", bytes.Replace(config(func(*configRecord) {}), []byte(`"v":3`), []byte(`"v":4`), 1), false, ErrNewerVersion},
		{"config short window", config(func(r *configRecord) { r.Window = 1 }), false, ErrDamaged},
		{"config endless window", config(func(r *configRecord) { r.Window = 1 << 62 }), false, ErrDamaged},
		{"config without incarnation", config(func(r *configRecord) { r.Incarnation = 0 }), false, ErrDamaged},
		{"config endless floor", config(func(r *configRecord) { r.Floor = 1 << 62 }), false, ErrDamaged},
		{"config bad layout", bytes.Replace(config(func(*configRecord) {}), []byte("default"), []byte("defect"), 1), false, ErrDamaged},
	}
	for _, tt := range tests {
		var err error
		if tt.node {
			_, err = decodeNode("v1/a/n/1", tt.value)
		} else {
			_, err = decodeConfig("v1/a/config", tt.value)
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: decode(%s) = %v, want %v", tt.name, tt.value, err, tt.want)
		}
	}
}

// FuzzRecords: reading any value ends in a record or an error, and a record
// reads the same after it is written again.
func FuzzRecords(f *testing.F) {
	c := newConfigRecord(testConfig(f))
	f.Add(c.encode())
	f.Add((nodeRecord{Nonce: "n", Owner: "o", Until: 7, State: flagHeld}).encode())
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if r, err := decodeConfig("k", value); err == nil {
			if again, err := decodeConfig("k", r.encode()); err != nil || again != r {
				t.Errorf("%s: read as %+v, written and read as %+v, %v", value, r, again, err)
			}
		} else if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewerVersion) {
			t.Errorf("decodeConfig(%s) = %v", value, err)
		}
		if r, err := decodeNode("k", value); err == nil {
			if again, err := decodeNode("k", r.encode()); err != nil || again != r {
				t.Errorf("%s: read as %+v, written and read as %+v, %v", value, r, again, err)
			}
		} else if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewerVersion) {
			t.Errorf("decodeNode(%s) = %v", value, err)
		}
	})
}
