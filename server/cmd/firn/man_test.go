package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/internal/test/must"
)

// TestManPages: every command has a page, in which man finds nothing to
// complain of.
func TestManPages(t *testing.T) {
	a, stdout, stderr := serveApp(t)
	dir := filepath.Join(t.TempDir(), "man1")
	if code := run(t.Context(), a, []string{"man", "--dir", dir}); code != 0 {
		t.Fatalf("firn man --dir exits with %d\n%s", code, stderr)
	}
	pages := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		pages++
		page := must.Get(os.ReadFile(filepath.Join(dir, pageName(cmd)+".1")))(t)
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "'") {
				t.Errorf("%s has the line %q, which man takes for a request", pageName(cmd), line)
			}
		}
		for _, sub := range subcommands(cmd) {
			walk(sub)
		}
	}
	walk(newRoot(a))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != pages || pages < 30 {
		t.Errorf("%d pages of %d commands, %v", len(files), pages, err)
	}
	if code := run(t.Context(), a, []string{"man", "sequencer", "create"}); code != 0 {
		t.Fatalf("firn man sequencer create exits with %d\n%s", code, stderr)
	}
	for _, want := range []string{`.TH "FIRN\-SEQUENCER\-CREATE" 1`, `firn\-sequencer\-create \- Create a sequencer`, `      \-\-window duration `} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, stdout)
		}
	}
	for _, args := range [][]string{{"nonsense"}, {"serve", "x"}, {"--dir", dir, "serve"}} {
		if code := run(t.Context(), a, append([]string{"man"}, args...)); code != exitMisuse {
			t.Errorf("firn man %q exits with %d, want %d", args, code, exitMisuse)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("groff is not installed, so it did not check the pages")
		return
	}
	for _, f := range files {
		cmd := exec.CommandContext(t.Context(), groff, "-man", "-Kutf8", "-Tutf8", "-ww", "-z", filepath.Join(dir, f.Name()))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff on %s: %v\n%s", f.Name(), err, out)
		}
	}
}
