package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

type operation struct {
	Examples []struct {
		Path, Accept, Body string
		Status             int
	} `yaml:"x-examples"`
	Responses map[string]struct {
		Ref     string         `yaml:"$ref"`
		Content map[string]any `yaml:"content"`
	}
}

// TestOpenAPI: the description has exactly the paths and methods that are
// served, and each example gets the documented status, in a documented form.
func TestOpenAPI(t *testing.T) {
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]yaml.Node
	}
	must.Do(t, yaml.Unmarshal(openAPI, &doc))
	backend := servicetest.NewStoreBackend(t, new(memstore.Store), service.StoreBackendConfig{})
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "firn_ids_total 1\n")
	})
	h := NewHandler(Config{Front: service.Front{Backend: backend}, Metrics: metrics})
	served := map[string][]string{"/metrics": readMethods}
	for _, r := range routes {
		served[strings.TrimSuffix(r.path, "{$}")] = r.methods
	}
	for path, methods := range served {
		for _, m := range methods {
			if _, ok := doc.Paths[path][strings.ToLower(m)]; !ok && m != http.MethodHead {
				t.Errorf("openapi.yaml has no %s %s", m, path)
			}
		}
	}
	// In this order a sequencer is created before it is shown, and destroyed
	// last.
	order := []string{"post", "put", "get", "delete"}
	paths := make([]string, 0, len(doc.Paths))
	for path := range doc.Paths {
		paths = append(paths, path)
	}
	// next comes first: attach and detach need the sequencer that it creates.
	slices.SortFunc(paths, func(a, b string) int {
		rank := func(p string) int {
			return slices.Index([]string{"next", "detach", "attach"}, p[strings.LastIndexByte(p, '/')+1:])
		}
		ra, rb := rank(a), rank(b)
		if (ra < 0) != (rb < 0) {
			return rb - ra
		}
		if ra != rb {
			return ra - rb
		}
		return strings.Compare(a, b)
	})
	examples := 0
	for _, path := range paths {
		for key := range doc.Paths[path] {
			if key != "parameters" && !slices.Contains(served[path], strings.ToUpper(key)) {
				t.Errorf("openapi.yaml has %s %s, which is not served", key, path)
			}
		}
		for _, method := range order {
			node, ok := doc.Paths[path][method]
			if !ok {
				continue
			}
			var op operation
			must.Do(t, node.Decode(&op))
			if len(op.Examples) == 0 {
				t.Errorf("%s %s has no examples", method, path)
			}
			for _, e := range op.Examples {
				examples++
				w := nettest.Ask(h, strings.ToUpper(method), e.Path, e.Body, "Accept: "+e.Accept)
				if w.Code != e.Status {
					t.Errorf("%s %s: status %d, want %d: %s", method, e.Path, w.Code, e.Status, w.Body)
					continue
				}
				media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
				said, ok := op.Responses[fmt.Sprint(e.Status)]
				switch {
				case ok:
					if _, ok := said.Content[media]; !ok {
						t.Errorf("%s %s: %s is not among its forms", method, e.Path, media)
					}
				case op.Responses["default"].Ref != "#/components/responses/problem" || media != "application/problem+json":
					t.Errorf("%s %s: status %d as %s is not described", method, e.Path, e.Status, media)
				}
				if strings.HasSuffix(media, "json") && !json.Valid(w.Body.Bytes()) {
					t.Errorf("%s %s: %s is no JSON", method, e.Path, w.Body)
				}
			}
		}
	}
	if examples < 25 || doc.OpenAPI != "3.1.0" {
		t.Errorf("%d examples of OpenAPI %s", examples, doc.OpenAPI)
	}
	_ = backend.Close(context.Background())
}

// TestOpenAPISequencer: the description of a sequencer has the fields of its
// JSON form, and no others.
func TestOpenAPISequencer(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]yaml.Node }
		}
	}
	must.Do(t, yaml.Unmarshal(openAPI, &doc))
	var want []string
	for f := range reflect.TypeFor[SequencerJSON]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(doc.Components.Schemas["Sequencer"].Properties)); !slices.Equal(got, want) {
		t.Errorf("openapi.yaml: a sequencer has the fields %q, want %q", got, want)
	}
}

// TestOpenAPIForGenerators: no text ends at a comma of a flow mapping, which
// makes a key of the rest, and generators make no 32-bit fields, in which Java
// wraps greater numbers silently.
func TestOpenAPIForGenerators(t *testing.T) {
	var doc yaml.Node
	must.Do(t, yaml.Unmarshal(openAPI, &doc))
	var check func(*yaml.Node)
	check = func(n *yaml.Node) {
		fields := make(map[string]string)
		for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			key, value := n.Content[i].Value, n.Content[i+1]
			fields[key] = value.Value
			if value.Tag == "!!null" || key == "<<" {
				t.Errorf("openapi.yaml:%d: the key %q has no value of its own", value.Line, key)
			}
		}
		if fields["type"] == "integer" && fields["format"] != "int64" && fields["maximum"] == "" {
			t.Errorf("openapi.yaml:%d: an integer without a format or a maximum", n.Line)
		}
		for _, c := range n.Content {
			check(c)
		}
	}
	check(&doc)
}
