package deploy

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/firnid/firn/internal/test/must"
)

// compose reads the compose file like docker compose, with some variables.
func compose(t *testing.T, env ...string) *types.Project {
	file := filepath.Join(root, "deploy", "compose", "compose.yaml")
	o := must.Get(cli.NewProjectOptions([]string{file}, cli.WithEnv(env)))(t)
	return must.Get(o.LoadProject(context.Background()))(t)
}

// TestComposeBucket: a server uses the bucket of the caller and its credentials,
// and starts without the etcd.
func TestComposeBucket(t *testing.T) {
	env := []string{"FIRN_STORE=s3://ids/firn", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=c"}
	s := must.Get(compose(t, env...).GetService("firn-1"))(t)
	for _, want := range env {
		name, value, _ := strings.Cut(want, "=")
		if got := s.Environment[name]; got == nil || *got != value {
			t.Errorf("%s is %v, want %q", name, got, value)
		}
	}
	if len(s.DependsOn) != 0 {
		t.Errorf("it starts %v too", s.DependsOn)
	}
}

func TestCompose(t *testing.T) {
	project := compose(t)
	names := project.ServiceNames()
	if want := []string{"etcd", "firn-1", "firn-2", "firn-3"}; !slices.Equal(names, want) {
		t.Fatalf("the services are %v, want %v", names, want)
	}
	ports := make(map[string]bool)
	for _, name := range names[1:] {
		s := must.Get(project.GetService(name))(t)
		if got := strings.Join(s.HealthCheck.Test, " "); got != "CMD /usr/bin/firn health" {
			t.Errorf("the health check of %s is %q", name, got)
		}
		if store := s.Environment["FIRN_STORE"]; store == nil || !strings.HasPrefix(*store, "etcd://etcd:2379/") {
			t.Errorf("the store of %s is %v, want the etcd of the file", name, store)
		}
		if s.Hostname != name {
			t.Errorf("%s is %q to other servers, which reach it as %[1]s", name, s.Hostname)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" || ports[p.Published] {
				t.Errorf("%s is at %s:%s, want a port of loopback that is its own", name, p.HostIP, p.Published)
			}
			ports[p.Published] = true
		}
	}
	if v, ok := project.Volumes["etcd"]; !ok || bool(v.External) {
		t.Errorf("the store has no volume of the project: %v", project.Volumes)
	}
}
