package main

import (
	"encoding/json"
	"fmt"
	"html"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// shownRecord has a value of its own in each field.
const shownRecord = `{"v":3,"layout":"default","max_ahead":7000,"window":31000,"longest_window":47000,"state":"detaching","incarnation":6,` +
	`"floor":1795132811000,"created":1795132822000,"nonce":"n","nodes":[12,345],"moved_to":"etcd://else.example/firn","prefix":"ord_x",` +
	`"changed":{"what":"window","by":"ops@h-9","at":1795132833000}}`

// shownFields has, for each field of a grant.Info, how it is shown: by its key
// and value in JSON and over gRPC, by a line of firn sequencer show, in a row of
// firn sequencer list ("" if it is not in the table), and on its page of the
// console.
var shownFields = map[string]struct{ json, value, grpc, message, show, list, console string }{
	"Name":            {"name", "orders", "name", "orders", "sequencer +orders", "orders", "<h1>orders</h1>"},
	"State":           {"state", "detaching", "state", "detaching", "state +detaching", "", `detaching</span>`},
	"Config.Layout":   {"layout", "default", "layout", "default", "layout +default", "default", "Layout <code>default</code>"},
	"Config.MaxAhead": {"max_ahead", "7s", "maxAhead", "7s", "max ahead +7s", "7s", "<dt>Maximum ahead of the clock</dt><dd>7s</dd>"},
	"Config.Window":   {"window", "31s", "window", "31s", `window +31s \(`, "31s", "<dt>Window</dt><dd>31s</dd>"},
	"Config.Nodes":    {"node_range", "12..345", "nodeRange", "12..345", "nodes +12..345 of ", "", "<dt>Range of node IDs</dt><dd>12..345</dd>"},
	"Config.Prefix":   {"prefix", "ord_x", "prefix", "ord_x", "prefix +ord_x", "", "<dt>Prefix</dt><dd>ord_x</dd>"},
	"Incarnation":     {"incarnation", "6", "incarnation", "6", "created .*, incarnation 6", "", "<dt>Incarnation</dt><dd>6</dd>"},
	"Floor":           {"floor", "2026-11-20T00:00:11.000Z", "floor", "2026-11-20T00:00:11Z", "floor +.* 2026-11-20T00:00:11.000Z", "", "<dt>No IDs before</dt><dd>2026-11-20 00:00:11"},
	"Created":         {"created", "2026-11-20T00:00:22.000Z", "created", "2026-11-20T00:00:22Z", "created +2026-11-20T00:00:22.000Z", "", "<dt>Created</dt><dd>2026-11-20 00:00:22"},
	"LongestWindow":   {"longest_window", "47s", "longestWindow", "47s", `window .*\(longest 47s\)`, "(longest 47s)", "<dt>Longest window ever</dt><dd>47s</dd>"},
	"MovedTo":         {"moved_to", "etcd://else.example/firn", "movedTo", "etcd://else.example/firn", "moved to +etcd://else.example/firn", "moved to etcd://else.example/firn", "<dt>Moved to</dt><dd>etcd://else.example/firn</dd>"},
	"LastChange.What": {"last_change.what", "window", "lastChange.what", "window", "last change +window by", "", "<dt>Last change</dt><dd>window by"},
	"LastChange.By":   {"last_change.by", "ops@h-9", "lastChange.by", "ops@h-9", "last change .*ops@h-9", "", "<dt>Last change</dt><dd>window by ops@h-9"},
	"LastChange.At":   {"last_change.at", "2026-11-20T00:00:33.000Z", "lastChange.at", "2026-11-20T00:00:33Z", "last change .* 2026-11-20T00:00:33.000Z", "", "<dt>Last change</dt><dd>window by ops@h-9, 2026-11-20 00:00:33"},
}

// leaves yields the paths and values of the exported fields of a struct. Values
// with a text of their own are not taken apart.
func leaves(v reflect.Value, path string, yield func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		f, at := v.Type().Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, ".")
		_, text := reflect.Zero(f.Type).Interface().(fmt.Stringer)
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Struct && !text:
			leaves(v.Field(i), at, yield)
		default:
			yield(at, v.Field(i))
		}
	}
}

// flat returns the values of a JSON object by the paths of their keys.
func flat(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	all := make(map[string]string)
	for key, v := range v {
		if object, ok := v.(map[string]any); ok {
			for sub, v := range object {
				all[key+"."+sub] = fmt.Sprint(v)
			}
			continue
		}
		all[key] = fmt.Sprint(v)
	}
	return all
}

// TestFieldsOfASequencer: every field of a sequencer is shown, with its own
// value, over HTTP and gRPC, by commands, and in the console. RESP has no
// command that shows a sequencer.
func TestFieldsOfASequencer(t *testing.T) {
	url := testStore(t)
	store := openTest(t, url)
	faultstore.Put(t, store, "v1/orders/config", shownRecord)
	info := must.Get(grant.Lookup(t.Context(), store, "orders"))(t)
	seen := make(map[string]string)
	leaves(reflect.ValueOf(info), "", func(path string, v reflect.Value) {
		text := fmt.Sprint(v.Interface())
		if other := seen[text]; other != "" || v.IsZero() {
			t.Errorf("%s is %q in the record of this test, as %q is: give it a value of its own", path, text, other)
		}
		seen[text] = path
		if _, ok := shownFields[path]; !ok {
			t.Errorf("grant.Info has %s: say in shownFields how it is shown", path)
		}
	})
	if len(seen) != len(shownFields) {
		t.Errorf("shownFields has %d fields, and grant.Info %d", len(shownFields), len(seen))
	}

	r := startServe(t, nil, "--store", url)
	command := func(args ...string) []byte {
		t.Helper()
		out, errs, code := runFirn(t, append(args, "--store", url)...)
		if code != exitFine {
			t.Fatalf("firn %v: %s", args, errs)
		}
		return []byte(out)
	}
	message := func(m proto.Message) map[string]string {
		t.Helper()
		text := must.Get(protojson.Marshal(m))(t)
		return flat(t, text)
	}
	sequencers := firnv1.NewSequencersClient(nettest.DialGRPC(t, strings.TrimPrefix(r.url, "http://")))
	one := must.Get(sequencers.Get(t.Context(), &firnv1.GetRequest{Name: "orders"}))(t)
	all := must.Get(sequencers.List(t.Context(), &firnv1.ListRequest{}))(t)
	var listed struct{ Sequencers []json.RawMessage }
	must.Do(t, json.Unmarshal(r.get(t, "/v1/sequencers"), &listed))
	inJSON := map[string]map[string]string{
		"GET /v1/sequencers/orders": flat(t, r.get(t, "/v1/sequencers/orders")), "GET /v1/sequencers": flat(t, listed.Sequencers[0]),
		"sequencer show --json": flat(t, command("sequencer", "show", "orders", "--json")), "sequencer list --json": flat(t, command("sequencer", "list", "--json")),
	}
	overGRPC := map[string]map[string]string{"Get": message(one.Sequencer), "List": message(all.Sequencers[0])}
	page, show, list := html.UnescapeString(string(r.get(t, "/sequencers/orders"))), command("sequencer", "show", "orders"), string(command("sequencer", "list"))
	for path, want := range shownFields {
		for where, object := range inJSON {
			if object[want.json] != want.value {
				t.Errorf("%s: %s has %s %q, want %q", path, where, want.json, object[want.json], want.value)
			}
			delete(object, want.json)
		}
		for where, object := range overGRPC {
			if object[want.grpc] != want.message {
				t.Errorf("%s: %s over gRPC has %s %q, want %q", path, where, want.grpc, object[want.grpc], want.message)
			}
			delete(object, want.grpc)
		}
		if !regexp.MustCompile(`(?m)^(` + want.show + `)`).Match(show) {
			t.Errorf("%s: no line matches %q in firn sequencer show:\n%s", path, want.show, show)
		}
		if !strings.Contains(list, want.list) {
			t.Errorf("%s: %q is not in firn sequencer list:\n%s", path, want.list, list)
		}
		if !strings.Contains(page, want.console) {
			t.Errorf("%s: the console does not show %q", path, want.console)
		}
	}
	for where, object := range inJSON {
		delete(object, "nodes") // the records of node IDs
		if len(object) > 0 {
			t.Errorf("%s also has %v, which belongs to no field", where, object)
		}
	}
	for where, object := range overGRPC {
		if len(object) > 0 {
			t.Errorf("%s over gRPC also has %v, which belongs to no field", where, object)
		}
	}
}
