package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/must"
)

// The page on dependencies lists every direct one, and none that there is not.
// The root module has none, see internal/arch.
func TestDependencies(t *testing.T) {
	const root = "../../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/decisions/dependencies.md"))
	if os.IsNotExist(err) {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
			t.Skip("the module stands alone, without the repository's docs")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \|`).FindAllStringSubmatch(string(page), -1) {
		for _, m := range regexp.MustCompile("`([a-z0-9.]+/[^`]+)`").FindAllStringSubmatch(row[1], -1) {
			listed[m[1]] = true
		}
	}
	required := make(map[string]bool)
	work := must.Get(os.ReadFile(filepath.Join(root, "go.work")))(t)
	modules := []string{"tools", "bench", "tools/release", "tools/deploy"} // not published
	for _, m := range regexp.MustCompile(`(?m)^\t\./(\S+)$`).FindAllStringSubmatch(string(work), -1) {
		modules = append(modules, m[1])
	}
	for _, module := range modules {
		out := must.Get(exec.Command("go", "mod", "edit", "-json", filepath.Join(root, module, "go.mod")).Output())(t)
		var mod struct {
			Require []struct {
				Path     string
				Indirect bool
			}
			Tool []struct{ Path string }
		}
		must.Do(t, json.Unmarshal(out, &mod))
		for _, r := range mod.Require {
			// Go calls a module indirect that has a tool of ours.
			isTool := false
			for _, tool := range mod.Tool {
				isTool = isTool || strings.HasPrefix(tool.Path+"/", r.Path+"/")
			}
			if (!r.Indirect || isTool) && !strings.HasPrefix(r.Path, "github.com/firnid/") {
				required[r.Path] = true
			}
		}
	}
	if len(required) < 3 {
		t.Fatalf("the go.mod files require %v: the test does not see all requirements", required)
	}
	for name := range required {
		if !listed[name] {
			t.Errorf("docs/decisions/dependencies.md does not list %s", name)
		}
	}
	for name := range listed {
		if !required[name] {
			t.Errorf("docs/decisions/dependencies.md lists %s, which no go.mod requires", name)
		}
	}
}
