package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// A goModule is a module that is published.
type goModule struct {
	dir  string // in the repository; "" for the root
	file *modfile.File
	sums []string // the lines of go.sum that modules which require it need
}

func (m *goModule) path() string { return m.file.Module.Mod.Path }

// tags returns the tags that Go looks for in the repository: v1.2.3 for the
// root module, and server/v1.2.3 for the module in server.
func (r *release) tags() []string {
	var all []string
	for _, m := range r.modules {
		all = append(all, path.Join(m.dir, r.version))
	}
	slices.Sort(all)
	return all
}

// makeModules makes a commit in which the modules require each other by
// version, and the files that a module proxy serves for it.
//
// In the tree they require v0.0.0 and replace it by a directory. go install
// refuses such a module, and go get ignores the replacement.
func (r *release) makeModules(ctx context.Context) error {
	parent, err := r.checkOut(ctx)
	if err != nil {
		return err
	}
	if err := r.readModules(); err != nil {
		return err
	}
	var tree string
	for _, m := range r.modules {
		if err := r.rewrite(m); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
		if tree, err = r.addAll(ctx); err != nil {
			return err
		}
		if err := r.publish(m, tree); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
	}
	return r.tag(ctx, tree, parent)
}

// readModules reads go.work and the go.mod files of its modules. go.work lists
// each module after those that it requires.
func (r *release) readModules() error {
	data, err := os.ReadFile(filepath.Join(r.src, "go.work"))
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return err
	}
	for _, use := range work.Use {
		m := &goModule{dir: path.Clean(use.Path)}
		if m.dir == "." {
			m.dir = ""
		}
		name := filepath.Join(m.dir, "go.mod")
		data, err := os.ReadFile(filepath.Join(r.src, name))
		if err != nil {
			return err
		}
		if m.file, err = modfile.Parse(name, data, nil); err != nil {
			return err
		}
		r.modules = append(r.modules, m)
	}
	return nil
}

// rewrite makes a module require the version of the other modules, whose sums
// it needs. They have already been published.
func (r *release) rewrite(m *goModule) error {
	var sums []string
	for _, other := range r.modules {
		if !slices.ContainsFunc(m.file.Require, func(req *modfile.Require) bool { return req.Mod.Path == other.path() }) {
			continue
		}
		if other.sums == nil {
			return fmt.Errorf("it requires %s, which go.work must list before it", other.path())
		}
		if err := m.file.AddRequire(other.path(), r.version); err != nil {
			return err
		}
		if err := m.file.DropReplace(other.path(), ""); err != nil {
			return err
		}
		sums = append(sums, other.sums...)
	}
	m.file.Cleanup()
	for _, rep := range m.file.Replace {
		return fmt.Errorf("go.mod replaces %s, so go install would refuse it", rep.Old.Path)
	}
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	dir := filepath.Join(r.src, m.dir)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil {
		return err
	}
	if sums == nil {
		return nil
	}
	name := filepath.Join(dir, "go.sum")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err = addSums(old, sums)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// addSums adds lines to a go.sum, in the order of the go command.
func addSums(old []byte, lines []string) ([]byte, error) {
	sums := make(map[module.Version]string)
	for line := range strings.Lines(string(old) + strings.Join(lines, "\n")) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("go.sum has the line %q", line)
		}
		sums[module.Version{Path: fields[0], Version: fields[1]}] = fields[2]
	}
	versions := slices.Collect(maps.Keys(sums))
	module.Sort(versions)
	var text []byte
	for _, v := range versions {
		text = fmt.Appendf(text, "%s %s %s\n", v.Path, v.Version, sums[v])
	}
	return text, nil
}

// publish writes the files that a module proxy serves for a module, in the form
// for GOPROXY=file://….
func (r *release) publish(m *goModule, tree string) error {
	version := module.Version{Path: m.path(), Version: r.version}
	escaped, err := module.EscapePath(m.path())
	if err != nil {
		return err
	}
	dir := filepath.Join(r.out, "proxy", filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	at := filepath.Join(dir, r.version)
	var zip bytes.Buffer
	if err := modzip.CreateFromVCS(&zip, version, r.src, tree, m.dir); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(r.src, m.dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{r.version, r.time})
	if err != nil {
		return err
	}
	for suffix, data := range map[string][]byte{".zip": zip.Bytes(), ".mod": mod, ".info": info} {
		if err := os.WriteFile(at+suffix, data, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "list"), []byte(r.version+"\n"), 0o644); err != nil {
		return err
	}
	zipSum, err := dirhash.HashZip(at+".zip", dirhash.Hash1)
	if err != nil {
		return err
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(mod)), nil
	})
	if err != nil {
		return err
	}
	m.sums = []string{
		fmt.Sprintf("%s %s %s", m.path(), r.version, zipSum),
		fmt.Sprintf("%s %s/go.mod %s", m.path(), r.version, modSum),
	}
	return nil
}
