package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/internal/test/must"
)

// TestListRecreates: the commands that firn sequencer list prints create a
// sequencer with every field of its configuration in another store. The table
// has every field of a sequencer, with the command that carries it.
func TestListRecreates(t *testing.T) {
	url := "dir:" + t.TempDir()
	s, err := dirstore.Open(t.Context(), strings.TrimPrefix(url, "dir:"), &dirstore.Options{Create: true, AllowVolatile: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// All fields differ from their defaults, and from each other.
	c := grant.Config{
		Layout: firn.MustParseLayout("twitter,epoch=2020-01-01T00:00:00Z,even=2"), MaxAhead: 1234 * time.Millisecond, Window: 91 * time.Second,
		Nodes: &grant.NodeRange{Lo: 3, Hi: 77}, Prefix: "order",
	}
	longest := c
	longest.Window = 10 * time.Minute
	floor := time.Date(2026, 10, 2, 3, 4, 5, 678e6, time.UTC)
	must.Get(grant.Create(t.Context(), s, "orders", longest, &grant.CreateOptions{Floor: floor}))(t)
	info := must.Get(grant.SetWindow(t.Context(), s, "orders", c.Window))(t)
	code, out := runLine(t, "sequencer list --store "+url)
	var create, fence string
	for line := range strings.Lines(out) {
		if args, ok := strings.CutPrefix(line, "firn sequencer create orders "); ok {
			create = "sequencer create orders " + strings.TrimSpace(args)
		}
		if args, ok := strings.CutPrefix(line, "firn node fence orders "); ok {
			fence = "node fence orders " + strings.TrimSpace(args)
		}
	}
	if code != exitFine || create == "" || fence == "" {
		t.Fatalf("list ends with %d, and prints %s", code, out)
	}
	if code, out := runLine(t, create+" --store "+url); code != exitFine { // nothing happens where it is
		t.Fatalf("%s: %d, %s", create, code, out)
	}
	other := "dir:" + t.TempDir() + "/new"
	if code, out := runLine(t, create+" --store "+other+"?create=true&volatile=true"); code != exitFine {
		t.Fatalf("%s: %d, %s", create, code, out)
	}
	there := must.Get(dirstore.Open(t.Context(), strings.TrimPrefix(other, "dir:"), &dirstore.Options{AllowVolatile: true}))(t)
	defer there.Close()
	got := must.Get(grant.Lookup(t.Context(), there, "orders"))(t)
	carriedBy := map[string]string{
		"Name": "create", "Floor": "create", "LongestWindow": "fence", "Config.Layout": "create", "Config.MaxAhead": "create",
		"Config.Window": "create", "Config.Nodes": "create", "Config.Prefix": "create",
		"State": "the comment of a sequencer that is not attached", "MovedTo": "the same",
		// Those of a new sequencer, which the fence then raises.
		"Created": "", "Incarnation": "", "LastChange.What": "", "LastChange.By": "", "LastChange.At": "",
	}
	has := make(map[string]any)
	leaves(reflect.ValueOf(got), "", func(path string, v reflect.Value) { has[path] = v.Interface() })
	leaves(reflect.ValueOf(info), "", func(path string, v reflect.Value) {
		by, known := carriedBy[path]
		delete(carriedBy, path)
		switch {
		case !known:
			t.Errorf("no row says which command carries %s", path)
		case by == "create" && v.IsZero():
			t.Errorf("%s is zero here: the test does not see whether it is carried", path)
		case by == "create" && !reflect.DeepEqual(has[path], v.Interface()):
			t.Errorf("%s is %v, want %v: %s", path, has[path], v, create)
		}
	})
	if len(carriedBy) > 0 {
		t.Errorf("rows of fields that do not exist: %v", carriedBy)
	}
	if code, out := runLine(t, fence+" --store "+other); code != exitFine {
		t.Fatalf("%s: %d, %s", fence, code, out)
	}
	if got, err := grant.Lookup(t.Context(), there, "orders"); err != nil || got.LongestWindow != info.LongestWindow || got.LongestWindow == got.Config.Window {
		t.Errorf("fenced there, it has the longest window %v, want %v; %v", got.LongestWindow, info.LongestWindow, err)
	}
}

// TestRecreation: a sequencer that makes no IDs here is not created by mistake.
func TestRecreation(t *testing.T) {
	for state := grant.Attached; state <= grant.Purged; state++ {
		for _, moved := range []string{"", "etcd://b"} {
			lines := recreation(grant.Info{Name: "orders", State: state, MovedTo: moved})
			for _, line := range lines {
				if runs := !strings.HasPrefix(line, "#"); runs != (state == grant.Attached && moved == "") {
					t.Errorf("%v, moved to %q: %s", state, moved, line)
				}
			}
			if all := fmt.Sprint(lines); moved != "" && !strings.Contains(all, moved) || state != grant.Attached && moved == "" && !strings.Contains(all, state.String()) {
				t.Errorf("%v, moved to %q: %s", state, moved, all)
			}
		}
	}
}
