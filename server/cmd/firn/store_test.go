package main

import (
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/layouts"
	"github.com/firnid/firn/server/stores"
)

// TestContainer: no command makes a store of its own in a container. In a pod
// firn names Kubernetes as a store.
func TestContainer(t *testing.T) {
	for _, tt := range []struct{ args, service, want string }{
		{"serve --listen 127.0.0.1:0", "", "hint: share one store"},
		{"next", "", "hint: share one store"},
		{"sequencer create a", "", "hint: share one store"},
		{"serve --listen 127.0.0.1:0", "10.0.0.1", "--store kubernetes://\n      after kubectl apply"},
	} {
		a, _, stderr := serveApp(t)
		a.getenv = func(name string) string { return map[string]string{"KUBERNETES_SERVICE_HOST": tt.service}[name] }
		a.container = func() string { return "/.dockerenv exists" }
		if code := run(t.Context(), a, strings.Fields(tt.args)); code != exitMisuse {
			t.Errorf("firn %s in a container ends with %d, want %d: %s", tt.args, code, exitMisuse, stderr)
		}
		for _, text := range []string{"/.dockerenv exists", "each replica would make the same IDs", "--store", "--node", tt.want} {
			if !strings.Contains(stderr.String(), text) {
				t.Errorf("firn %s in a container does not say %q:\n%s", tt.args, text, stderr)
			}
		}
	}
}

// TestName: layouts that differ have names that differ and that a store
// takes.
func TestName(t *testing.T) {
	seen := make(map[string]string)
	for _, text := range []string{
		"default", "default,epoch=0", "default,node-bits=8,seq-bits=14", "hazelcast", "hazelcast,epoch=0", "uuidv7",
		"bits=time:41.node:10.seq:12,unit=1ms,epoch=0", "bits=time:41.node:10.seq:12,unit=2ms,epoch=0", "lable,mode=time-sequential,cluster=3",
	} {
		l, err := firn.ParseLayout(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		name := layouts.Name(l)
		must.Do(t, grant.CheckName(name))
		if before, ok := seen[name]; ok && firn.MustParseLayout(before) != l {
			t.Errorf("%s and %s both have the name %s", before, text, name)
		}
		seen[name] = text
	}
	if got := layouts.Name(firn.Default()); got != "default" {
		t.Errorf("the name of the default is %q", got)
	}
}

func openTest(t *testing.T, url string) grant.Store {
	t.Helper()
	s := must.Get(stores.Open(t.Context(), url))(t)
	t.Cleanup(func() { s.Close() })
	return s
}
