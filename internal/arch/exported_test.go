package arch

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file of exported names")

var usedModule = regexp.MustCompile(`(?m)^\t\./?(\S*)$`)

// public returns the packages that others import: those of the modules in
// go.work that are not internal, and the stores of module server.
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
// embedded type promotes are names too. No exported name has a type of an
// internal package, which other modules could not name.
//
//	go test ./internal/arch -run TestExported -update
func TestExported(t *testing.T) {
	const golden = "internal/arch/testdata/exported.txt"
	r := repository(t)
	c := &checker{repo: r, done: make(map[string]*types.Package)}
	var got []string
	for _, p := range public(r) {
		if c.check(p).Name() == "main" {
			continue
		}
		names := exportedBy(c.check(p))
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if strings.Contains(names[name], "/internal/") {
				t.Errorf("%s: %s is %s: other modules cannot name that type", p.importPath(), name, names[name])
			}
			if p.module.dir != "server" {
				got = append(got, fmt.Sprintf("%s: %s\n", p.importPath(), name))
			}
		}
	}
	if *update {
		write(t, golden, strings.Join(got, ""))
		return
	}
	want := slices.Collect(strings.Lines(r.texts[golden]))
	const otherwise = ": run go test ./internal/arch -run TestExported -update if it is meant"
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s lacks %s%s", golden, strings.TrimSpace(line), otherwise)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s has %s, which is gone%s", golden, strings.TrimSpace(line), otherwise)
		}
	}
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
	// Errors are expected: names of packages of others, and names that files
	// for several systems declare.
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

// exportedBy returns the exported names of a package, each with the type that a
// caller has to name: of a type, what it is an alias of or is made of.
func exportedBy(p *types.Package) map[string]string {
	all := make(map[string]string)
	add := func(kind, prefix string, o types.Object) {
		if o.Exported() {
			all[kind+" "+prefix+o.Name()] = o.Type().String()
		}
	}
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Const:
			add("const", "", o)
		case *types.Var:
			add("var", "", o)
		case *types.Func:
			add("func", "", o)
		case *types.TypeName:
			if !o.Exported() {
				continue
			}
			if o.IsAlias() {
				all["type "+name] = types.Unalias(o.Type()).String()
				continue
			}
			methods := types.NewMethodSet(types.NewPointer(o.Type()))
			switch u := o.Type().Underlying().(type) {
			case *types.Struct:
				all["type "+name] = "a struct"
				for f := range u.Fields() {
					add("field", name+".", f)
				}
			case *types.Interface:
				all["type "+name] = u.String()
				methods = types.NewMethodSet(u)
			default:
				all["type "+name] = u.String()
			}
			for m := range methods.Methods() {
				add("method", name+".", m.Obj())
			}
		}
	}
	return all
}
