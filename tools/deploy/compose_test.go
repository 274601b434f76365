package deploy

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// TestCompose reads the compose file like docker compose.
func TestCompose(t *testing.T) {
	o, err := cli.NewProjectOptions([]string{filepath.Join(root, "deploy", "compose", "compose.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	project, err := o.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	names := project.ServiceNames()
	if want := []string{"etcd", "firn-1", "firn-2", "firn-3"}; !slices.Equal(names, want) {
		t.Fatalf("the services are %v, want %v", names, want)
	}
	ports := make(map[string]bool)
	for _, name := range names[1:] {
		s, err := project.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
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
