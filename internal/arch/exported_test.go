package arch

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file of exported names")

var usedModule = regexp.MustCompile(`(?m)^\t\./?(\S*)$`)

// public returns the packages that others import: those of the modules in
// go.work that are not internal. Of module server, only package server and its
// stores have a stable API.
func public(r *repo) (all []*pkg) {
	dirs := []string{"server"}
	for _, m := range usedModule.FindAllStringSubmatch(r.texts["go.work"], -1) {
		dirs = append(dirs, cmp.Or(m[1], "."))
	}
	for _, p := range r.packages {
		if slices.Contains(dirs, p.module.dir) && !isInternal(p.dir) {
			all = append(all, p)
		}
	}
	return all
}

// TestExported compares the exported names of every public package, those of
// module server aside, with a golden file. What is exported is a promise: a
// name that comes or goes shows up in the change that does it. Methods that an
// embedded type promotes are names too.
//
//	go test ./internal/arch -run TestExported -update
func TestExported(t *testing.T) {
	const golden = "testdata/exported.txt"
	r := repository(t)
	c := &checker{repo: r, done: make(map[string]*types.Package)}
	var got []string
	for _, p := range public(r) {
		if p.module.dir != "server" && c.check(p).Name() != "main" {
			for _, name := range namesOf(c.check(p)) {
				got = append(got, fmt.Sprintf("%s: %s\n", p.importPath(), name))
			}
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.SplitAfter(strings.TrimSuffix(string(text), "\n")+"\n", "\n")
	want = want[:len(want)-1]
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s lacks %s: run go test ./internal/arch -run TestExported -update if it is meant", golden, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s has %s, which is gone: run go test ./internal/arch -run TestExported -update if it is meant", golden, line)
		}
	}
}

// TestUsable: what a public package exports has no types of internal packages,
// which other modules could not name.
func TestUsable(t *testing.T) {
	r := repository(t)
	c := &checker{repo: r, done: make(map[string]*types.Package)}
	checked := 0
	for _, p := range public(r) {
		if c.check(p).Name() == "main" {
			continue
		}
		checked++
		scope := c.check(p).Scope()
		for _, name := range scope.Names() {
			o := scope.Lookup(name)
			if !o.Exported() {
				continue
			}
			for _, text := range mentioned(o) {
				if strings.Contains(text, "/internal/") {
					t.Errorf("%s.%s is %s: other modules cannot name that type", p.importPath(), name, text)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("%d public packages found", checked)
	}
}

// mentioned returns the types that a caller of o has to name: of o itself, or
// of its exported fields and methods.
func mentioned(o types.Object) (all []string) {
	t, ok := o.(*types.TypeName)
	if !ok {
		return []string{o.Type().String()}
	}
	if t.IsAlias() {
		return []string{types.Unalias(t.Type()).String()}
	}
	switch u := t.Type().Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				all = append(all, f.Type().String())
			}
		}
	default:
		all = append(all, u.String())
	}
	set := types.NewMethodSet(types.NewPointer(t.Type()))
	for m := range set.Methods() {
		if m.Obj().Exported() {
			all = append(all, m.Obj().Type().String())
		}
	}
	return all
}

func (p *pkg) importPath() string {
	return path.Join(p.module.path, strings.TrimPrefix(strings.TrimPrefix(p.dir, p.module.dir), "/"))
}

// A checker determines the types of the repository's packages from their source
// alone. Packages of others are empty: names that they promote are not visible.
type checker struct {
	repo *repo
	done map[string]*types.Package
}

func (c *checker) check(p *pkg) *types.Package {
	if have := c.done[p.importPath()]; have != nil {
		return have
	}
	var files []*ast.File
	for _, f := range p.files {
		if !f.test {
			files = append(files, f.syntax)
		}
	}
	// Errors are expected: names of packages of others, and names that files for
	// several systems declare.
	config := types.Config{Importer: c, Error: func(error) {}, IgnoreFuncBodies: true, FakeImportC: true}
	checked, _ := config.Check(p.importPath(), c.repo.fset, files, nil)
	c.done[p.importPath()] = checked
	return checked
}

// Import implements types.Importer.
func (c *checker) Import(name string) (*types.Package, error) {
	for _, p := range c.repo.packages {
		if p.importPath() == name {
			return c.check(p), nil
		}
	}
	return nil, errors.New("a package of others")
}

// namesOf returns the exported names of a package.
func namesOf(p *types.Package) (names []string) {
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			names = append(names, "const "+name)
		case *types.Var:
			names = append(names, "var "+name)
		case *types.Func:
			names = append(names, "func "+name)
		case *types.TypeName:
			names = append(names, "type "+name)
			if !o.IsAlias() {
				names = append(names, membersOf(name, o.Type())...)
			}
		}
	}
	slices.Sort(names)
	return names
}

// membersOf returns the exported fields and methods of a type.
func membersOf(name string, t types.Type) (names []string) {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				names = append(names, fmt.Sprintf("field %s.%s", name, f.Name()))
			}
		}
	case *types.Interface:
		for i := range u.NumMethods() {
			if m := u.Method(i); m.Exported() {
				names = append(names, fmt.Sprintf("method %s.%s", name, m.Name()))
			}
		}
		return names
	}
	set := types.NewMethodSet(types.NewPointer(t))
	for i := range set.Len() {
		if m := set.At(i).Obj(); m.Exported() {
			names = append(names, fmt.Sprintf("method %s.%s", name, m.Name()))
		}
	}
	return names
}
