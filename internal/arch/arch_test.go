// Package arch contains the rules of the repository as tests: imports follow the
// picture in ARCHITECTURE.md, the library needs only the standard library,
// exported names are listed, and links between pages work. It exports nothing.
package arch

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestImports(t *testing.T) { report(t, checkImports(repository(t))) }

func TestZeroDependencies(t *testing.T) { report(t, checkZeroDependencies(repository(t))) }

func TestSelfContained(t *testing.T) { report(t, checkSelfContained(repository(t))) }

func TestDocs(t *testing.T) { report(t, checkDocs(repository(t))) }

func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

var loadRepository = sync.OnceValues(func() (*repo, error) {
	dir, err := rootDir()
	if err != nil {
		return nil, err
	}
	return load(os.DirFS(dir))
})

func repository(t *testing.T) *repo {
	t.Helper()
	r, err := loadRepository()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rootDir returns the repository's root: the nearest parent directory with a
// go.work or, in a copy of only the module, with a go.mod.
func rootDir() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for _, mark := range []string{"go.work", "go.mod"} {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", os.ErrNotExist
}
