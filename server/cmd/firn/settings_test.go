package main

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/operate/config"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// settings has, for each setting of a sequencer, its name in flags and in
// firn.yaml, and a value of a template. Over HTTP and gRPC the name has an
// underscore. Not all places can give all settings: a range of node IDs belongs
// to a store, which clients do not know.
var settings = map[string]struct {
	name, value           string
	byClients, everywhere bool // a client may give it, serve has a flag for it
}{
	"Layout":   {"layout", "hazelcast", true, true},
	"MaxAhead": {"max-ahead", "7s", true, true},
	"Window":   {"window", "31s", true, false},
	"Nodes":    {"nodes", "12..345", false, true},
	"Prefix":   {"prefix", "ord_x", true, false},
}

// TestSettingsOfASequencer: every setting in grant.Config has the same name
// wherever one can give it, and no place has one that grant.Config lacks.
func TestSettingsOfASequencer(t *testing.T) {
	var byClients []string // as in JSON
	for f := range reflect.TypeFor[grant.Config]().Fields() {
		s, ok := settings[f.Name]
		if !ok {
			t.Errorf("grant.Config has %s: say in settings where it is given", f.Name)
			continue
		}
		if s.byClients {
			byClients = append(byClients, strings.ReplaceAll(s.name, "-", "_"))
		}
		var template config.Template
		if err := template.Set(s.name, s.value); err != nil {
			t.Errorf("key %s of a template: %v", s.name, err)
		} else if v := reflect.ValueOf(template).FieldByName(f.Name); !v.IsValid() || v.IsZero() {
			t.Errorf("key %s of a template does not set its field %s", s.name, f.Name)
		}
		root := newRoot(&app{now: time.Now})
		for command, has := range map[string]bool{"sequencer create": true, "serve": s.everywhere} {
			c, _, err := root.Find(strings.Fields(command))
			if err != nil {
				t.Fatal(err)
			}
			if (c.Flags().Lookup(s.name) != nil) != has {
				t.Errorf("firn %s has --%s: %v, want %v", command, s.name, !has, has)
			}
		}
	}
	for f := range reflect.TypeFor[config.Template]().Fields() {
		if _, ok := settings[f.Name]; !ok && f.Name != "Pattern" && f.Name != "Line" {
			t.Errorf("a template has %s, which is not in settings", f.Name)
		}
	}
	slices.Sort(byClients)
	same := func(where string, got []string) {
		t.Helper()
		got = slices.DeleteFunc(got, func(name string) bool { return name == "name" })
		if slices.Sort(got); !slices.Equal(got, byClients) {
			t.Errorf("%s: one can give %q, want %q", where, got, byClients)
		}
	}

	var inJSON, overGRPC, onPage []string
	for f := range reflect.TypeFor[service.Creation]().Fields() {
		inJSON = append(inJSON, f.Tag.Get("json"))
	}
	same("service.Creation", inJSON)
	for fields, i := new(firnv1.CreateRequest).ProtoReflect().Descriptor().Fields(), 0; i < fields.Len(); i++ {
		overGRPC = append(overGRPC, string(fields.Get(i).Name()))
	}
	same("CreateRequest", overGRPC)
	r := startServe(t, nil, "--store", testStore(t))
	var described struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]yaml.Node }
		}
	}
	must.Do(t, yaml.Unmarshal(r.get(t, "/openapi.yaml"), &described))
	same("openapi.yaml", slices.Collect(maps.Keys(described.Components.Schemas["Settings"].Properties)))
	for _, m := range regexp.MustCompile(`<input id="[^"]*" name="([^"]*)"`).FindAllSubmatch(r.get(t, "/create"), -1) {
		onPage = append(onPage, strings.ReplaceAll(string(m[1]), "-", "_"))
	}
	same("the form of the console", onPage)
}
