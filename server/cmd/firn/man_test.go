package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn/internal/test/must"
)

// TestManPages: every command has a page, in which man finds nothing to
// complain of.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if code, out := runLine(t, "man --dir "+dir); code != exitFine {
		t.Fatalf("firn man --dir exits with %d\n%s", code, out)
	}
	var pages []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		pages = append(pages, filepath.Join(dir, pageName(cmd)+".1"))
		for _, sub := range subcommands(cmd) {
			walk(sub)
		}
	}
	walk(newRoot(&app{now: time.Now}))
	if files := must.Get(os.ReadDir(dir))(t); len(files) != len(pages) || len(pages) < 30 {
		t.Errorf("%d pages of %d commands", len(files), len(pages))
	}
	for _, page := range pages {
		if text := string(must.Get(os.ReadFile(page))(t)); strings.Contains(text, "\n'") {
			t.Errorf("%s has a line that man takes for a request:\n%s", page, text)
		}
		if groff, err := exec.LookPath("groff"); err != nil {
			t.Log("groff is not installed, so it did not check the page")
		} else if out, err := exec.CommandContext(t.Context(), groff, "-man", "-Kutf8", "-Tutf8", "-ww", "-z", page).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff on %s: %v\n%s", page, err, out)
		}
	}
}
