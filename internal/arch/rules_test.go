package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The rules read files, not packages: every file counts, whatever its build
// constraints, so that a rule cannot hold on one system and fail on another.
// Each rule takes a repo and returns its findings, one per line; no findings
// mean that the rule holds.

// A repo is the input of the rules: the Go files of all modules below one
// directory, and the text of the other files.
type repo struct {
	modules  []module
	packages []*pkg     // sorted by dir
	texts    []textFile // every file that is text, Go files included
	broken   []string   // Go files that cannot be parsed
}

// A module is a go.mod file.
type module struct {
	dir  string // of go.mod, slash-separated, "." for the repository's root
	path string // its module path
	mod  string // its text
	sum  bool   // there is a go.sum next to it
}

// A pkg is one directory with Go files.
type pkg struct {
	dir    string // slash-separated, "." for the repository's root
	module module
	files  []*goFile
}

type goFile struct {
	name      string // path from the repository's root
	test      bool   // its name ends in _test.go
	ignored   bool   // only built by hand: constraint "ignore"
	generated bool
	syntax    *ast.File
	fset      *token.FileSet
}

type textFile struct {
	name string
	text string
}

// imports returns the import paths of f with their positions.
func (f *goFile) imports() map[string]string {
	m := make(map[string]string)
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			p = spec.Path.Value
		}
		m[p] = f.at(spec.Pos())
	}
	return m
}

func (f *goFile) at(p token.Pos) string {
	return fmt.Sprintf("%s:%d", f.name, f.fset.Position(p).Line)
}

// name returns the package's name, without _test.
func (p *pkg) name() string {
	for _, f := range p.files {
		if !f.ignored && !f.test {
			return f.syntax.Name.Name
		}
	}
	return strings.TrimSuffix(p.files[0].syntax.Name.Name, "_test")
}

// load reads the repository in fsys. It omits directories named bin and build,
// and names that begin with a dot or an underscore, except the few hidden files
// that are written by hand. Go files in testdata are data.
func load(fsys fs.FS) (*repo, error) {
	r := new(repo)
	byDir := make(map[string]*pkg)
	fset := token.NewFileSet()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			switch {
			case name == ".", base == ".ci", base == ".github":
				return nil
			case strings.HasPrefix(base, "."), strings.HasPrefix(base, "_"), base == "bin", base == "build":
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || base == ".git" { // a file in a linked work tree
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0 {
			r.texts = append(r.texts, textFile{name, string(data)})
		}
		dir := path.Dir(name)
		if inTestdata(name) {
			return nil
		}
		switch {
		case base == "go.mod":
			_, sumErr := fs.Stat(fsys, path.Join(dir, "go.sum"))
			r.modules = append(r.modules, module{
				dir:  dir,
				path: modulePath(string(data)),
				mod:  string(data),
				sum:  sumErr == nil,
			})
		case strings.HasSuffix(base, ".go"):
			syntax, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				r.broken = append(r.broken, err.Error())
				return nil
			}
			p := byDir[dir]
			if p == nil {
				p = &pkg{dir: dir}
				byDir[dir] = p
				r.packages = append(r.packages, p)
			}
			p.files = append(p.files, &goFile{
				name:      name,
				test:      strings.HasSuffix(base, "_test.go"),
				ignored:   hasIgnoreTag(syntax),
				generated: ast.IsGenerated(syntax),
				syntax:    syntax,
				fset:      fset,
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	// The longest directory first: a file belongs to the module with the
	// nearest go.mod.
	slices.SortFunc(r.modules, func(a, b module) int { return depth(b.dir) - depth(a.dir) })
	for _, p := range r.packages {
		i := slices.IndexFunc(r.modules, func(m module) bool { return below(p.dir, m.dir) })
		if i < 0 {
			return nil, fmt.Errorf("no go.mod above %s", p.dir)
		}
		p.module = r.modules[i]
	}
	return r, nil
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}

// below reports whether dir is top or lies below it.
func below(dir, top string) bool {
	return top == "." || dir == top || strings.HasPrefix(dir, top+"/")
}

func inTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

func modulePath(mod string) string {
	for line := range strings.Lines(mod) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "module" {
			return strings.Trim(f[1], `"`)
		}
	}
	return ""
}

func hasIgnoreTag(f *ast.File) bool {
	for _, group := range f.Comments {
		if group.Pos() > f.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			// Every tag is set but "ignore": a file that is still excluded
			// needs it.
			x, err := constraint.Parse(c.Text)
			if err == nil && !x.Eval(func(tag string) bool { return tag != "ignore" }) &&
				x.Eval(func(string) bool { return true }) {
				return true
			}
		}
	}
	return false
}

// dirOf returns the directory, from the repository's root, of the package with
// an import path, and its module. ok is false for packages from elsewhere.
func (r *repo) dirOf(importPath string) (dir string, m module, ok bool) {
	for _, m := range r.modules { // the deepest first
		if m.path == "" {
			continue
		}
		if importPath == m.path {
			return m.dir, m, true
		}
		if rest, found := strings.CutPrefix(importPath, m.path+"/"); found {
			return path.Join(m.dir, rest), m, true
		}
	}
	return "", module{}, false
}

// An importLine defines what the packages that match pattern may import.
//
// A pattern is a directory from the repository's root, "." for the root
// package. "dir/..." matches dir and everything below it; "dir/*" matches each
// directory directly below dir.
type importLine struct {
	pattern string
	imports []string // patterns of what it may import
	tests   []string // what its _test.go files may import in addition
}

func matches(pattern, dir string) bool {
	if top, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == top || strings.HasPrefix(dir, top+"/")
	}
	if top, ok := strings.CutSuffix(pattern, "/*"); ok {
		return path.Dir(dir) == top
	}
	return dir == pattern
}

func matchesAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, dir) })
}

// checkImports compares every import between packages of the repository with
// the table. The first line that matches a package applies.
func checkImports(r *repo, table []importLine, where string) (findings []string) {
	for _, p := range r.packages {
		i := slices.IndexFunc(table, func(l importLine) bool { return matches(l.pattern, p.dir) })
		if i < 0 {
			findings = append(findings, fmt.Sprintf(
				"package %s has no line in the table of imports: add one that says which packages of the repository it may import, in %s",
				p.dir, where))
			continue
		}
		line := table[i]
		for _, f := range p.files {
			for imp, at := range f.imports() {
				dir, m, ok := r.dirOf(imp)
				if !ok || dir == p.dir {
					continue
				}
				// Go itself would allow it: the paths of the other
				// modules begin with the root module's.
				if m.dir != p.module.dir && slices.Contains(strings.Split(dir, "/"), "internal") {
					findings = append(findings, fmt.Sprintf(
						"%s: imports %s, which is internal to another module: an import across modules needs a published package",
						at, imp))
					continue
				}
				if matchesAny(line.imports, dir) || f.test && matchesAny(line.tests, dir) {
					continue
				}
				findings = append(findings, fmt.Sprintf(
					"%s: package %s may not import %s: its line %q allows %s; if the design has changed, change the line in %s",
					at, p.dir, dir, line.pattern, line.allowed(f.test), where))
			}
		}
	}
	slices.Sort(findings)
	return findings
}

func (l importLine) allowed(test bool) string {
	all := l.imports
	if test {
		all = slices.Concat(l.imports, l.tests)
	}
	if len(all) == 0 {
		return "nothing of the repository"
	}
	return strings.Join(all, ", ")
}

// checkZeroDependencies checks that the root module uses only the standard
// library: in its go.mod, and in every import, tests included.
func checkZeroDependencies(r *repo) (findings []string) {
	i := slices.IndexFunc(r.modules, func(m module) bool { return m.dir == "." })
	if i < 0 {
		return []string{"the repository's root has no go.mod"}
	}
	root := r.modules[i]
	n := 0
	for line := range strings.Lines(root.mod) {
		n++
		verb, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		verb, _, _ = strings.Cut(verb, "(")
		switch verb {
		case "require", "replace", "tool", "exclude":
			findings = append(findings, fmt.Sprintf(
				"go.mod:%d: %q: the root module has no dependencies, and no tools either: they belong in server/go.mod, tools/go.mod or bench/go.mod",
				n, strings.TrimSpace(line)))
		}
	}
	if root.sum {
		findings = append(findings, "go.sum: the root module has no dependencies, so it has no sums: remove the file")
	}
	for _, p := range r.packages {
		if p.module.dir != "." {
			continue
		}
		for _, f := range p.files {
			for imp, at := range f.imports() {
				if imp == "C" {
					findings = append(findings, at+`: imports "C": the root module builds without a C compiler`)
					continue
				}
				first, _, _ := strings.Cut(imp, "/")
				if !strings.Contains(first, ".") {
					continue
				}
				if _, m, ok := r.dirOf(imp); ok && m.dir == "." {
					continue
				}
				findings = append(findings, fmt.Sprintf(
					"%s: imports %s: the root module uses the standard library only, in tests too: move what needs it into server/ or another module",
					at, imp))
			}
		}
	}
	slices.Sort(findings)
	return findings
}

// checkPackageComments checks that each package's comment is in exactly one
// file, in the usual form, and attached to the package clause.
func checkPackageComments(r *repo) (findings []string) {
	for _, p := range r.packages {
		if !slices.ContainsFunc(p.files, func(f *goFile) bool { return !f.ignored }) {
			continue // programs to be run by hand
		}
		name := p.name()
		want := "Package " + name
		if name == "main" {
			want = "Command " + path.Base(p.dir)
		}
		var with []string
		cut := false
		for _, f := range p.files {
			if f.test || f.ignored || f.generated {
				continue
			}
			if at, ok := looseComment(f); ok {
				cut = true
				findings = append(findings, fmt.Sprintf(
					"%s: a blank line cuts this comment off from the package clause, so that readers never see it: join it with a line that holds only //",
					at))
			}
			if f.syntax.Doc == nil || strings.TrimSpace(f.syntax.Doc.Text()) == "" {
				continue
			}
			with = append(with, f.name)
			text := f.syntax.Doc.Text()
			rest, ok := strings.CutPrefix(text, want)
			if !cut && (!ok || rest != "" && !strings.ContainsAny(rest[:1], " \n,.:;")) {
				first, _, _ := strings.Cut(text, "\n")
				findings = append(findings, fmt.Sprintf(
					"%s: the package comment begins with %q, want %q", f.at(f.syntax.Doc.Pos()), first, want+" …"))
			}
		}
		switch {
		case len(with) == 0 && !cut:
			findings = append(findings, fmt.Sprintf(
				"package %s has no package comment: write one that begins with %q, in %s",
				p.dir, want, path.Join(p.dir, "doc.go")))
		case len(with) > 1:
			findings = append(findings, fmt.Sprintf(
				"package %s has a package comment in %d files, where readers see them in no order: keep one of %s (a comment about a file goes below its package clause)",
				p.dir, len(with), strings.Join(with, ", ")))
		}
	}
	slices.Sort(findings)
	return findings
}

// looseComment finds a comment that was intended as part of the package comment
// but is not attached to the package clause: any comment above the clause in
// doc.go, and in other files one that reads like a package comment. Build
// constraints and other directives do not count.
func looseComment(f *goFile) (at string, ok bool) {
	isDoc := path.Base(f.name) == "doc.go"
	for _, group := range f.syntax.Comments {
		if group.Pos() > f.syntax.Package {
			break
		}
		if group == f.syntax.Doc {
			continue
		}
		text := group.Text() // without directives
		if text == "" {
			continue
		}
		if isDoc || strings.HasPrefix(text, "Package ") || strings.HasPrefix(text, "Command ") {
			return f.at(group.Pos()), true
		}
	}
	return "", false
}

// vagueNames are package names that do not describe the contents.
var vagueNames = []string{"util", "utils", "common", "types", "helper", "helpers"}

// checkNames rejects packages with a vague name.
func checkNames(r *repo) (findings []string) {
	for _, p := range r.packages {
		base := path.Base(p.dir)
		name := p.name()
		for _, vague := range vagueNames {
			if name == vague || base == vague {
				findings = append(findings, fmt.Sprintf(
					"package %s: the name %q does not say what is inside: name it after its subject, or put the code where it is used",
					p.dir, vague))
			}
		}
	}
	return findings
}

// outsidePath finds the beginning of an absolute path on a particular machine.
// A path inside a URL or below another directory does not count. The names are
// assembled here so that this file follows the rule itself.
var outsidePath = regexp.MustCompile(`(?:^|[^A-Za-z0-9_.~})%*/-]|//)(/(?:` + strings.Join([]string{"work", "home", "root", "Users"}, "|") + `)/)`)

// outsideTexts are texts about the environment in which the repository was
// written.
var outsideTexts = []string{".." + "/shared", "proxy.golang" + ".org"}

// checkSelfContained checks that the files do not depend on a particular
// machine.
func checkSelfContained(r *repo) (findings []string) {
	for _, f := range r.texts {
		n := 0
		for line := range strings.Lines(f.text) {
			n++
			var found []string
			if m := outsidePath.FindStringSubmatch(line); m != nil {
				found = append(found, m[1])
			}
			for _, text := range outsideTexts {
				if strings.Contains(line, text) {
					found = append(found, text)
				}
			}
			for _, text := range found {
				findings = append(findings, fmt.Sprintf(
					"%s:%d: %q is of one machine: name a path inside the repository, or one that any reader has",
					f.name, n, text))
			}
		}
	}
	return findings
}

// checkExamples checks that every exported type of the root package has a
// runnable example: a function ExampleT or ExampleT_… with an Output comment. A
// type in except needs none; the map contains the reason, and an example that
// it names must exist. An unnecessary exception is a finding too.
func checkExamples(r *repo, except map[string]string, where string) (findings []string) {
	i := slices.IndexFunc(r.packages, func(p *pkg) bool { return p.dir == "." })
	if i < 0 {
		return []string{"the repository's root holds no package"}
	}
	root := r.packages[i]
	types := make(map[string]string) // name → position
	var tests []*ast.File
	for _, f := range root.files {
		switch {
		case f.ignored:
		case f.test:
			tests = append(tests, f.syntax)
		default:
			for _, decl := range f.syntax.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok || gen.Tok != token.TYPE {
					continue
				}
				for _, spec := range gen.Specs {
					if id := spec.(*ast.TypeSpec).Name; id.IsExported() {
						types[id.Name] = f.at(id.Pos())
					}
				}
			}
		}
	}
	if len(types) == 0 {
		return []string{"the root package exports no type: the rule has nothing to look at"}
	}
	shown := make(map[string]bool)    // by type
	examples := make(map[string]bool) // by name of the function
	for _, ex := range doc.Examples(tests...) {
		name, _, _ := strings.Cut(ex.Name, "_")
		if ex.Output != "" || ex.EmptyOutput {
			shown[name] = true
			examples["Example"+ex.Name] = true
		} else if _, ok := types[name]; ok && !shown[name] {
			shown[name] = false
		}
	}
	for name, at := range types {
		ran, found := shown[name]
		reason, excepted := except[name]
		switch {
		case excepted && strings.TrimSpace(reason) == "":
			findings = append(findings, fmt.Sprintf("%s: the exception of type %s has no reason: write one in %s", at, name, where))
		case excepted && ran:
			findings = append(findings, fmt.Sprintf("%s: type %s has an example, so it needs no exception: remove it from %s", at, name, where))
		case excepted || ran:
		case found:
			findings = append(findings, fmt.Sprintf("%s: the example of type %s has no // Output: comment, so that go test does not run it", at, name))
		default:
			findings = append(findings, fmt.Sprintf(
				"%s: type %s has no example: write func Example%s or Example%s_… with an // Output: comment in example_test.go, or an exception with its reason in %s",
				at, name, name, name, where))
		}
	}
	for name, reason := range except {
		if _, ok := types[name]; !ok {
			findings = append(findings, fmt.Sprintf("the exception of type %s is of a type that does not exist: remove it from %s", name, where))
		}
		for _, example := range exampleName.FindAllString(reason, -1) {
			if !examples[example] {
				findings = append(findings, fmt.Sprintf("the exception of type %s names %s, which does not exist or does not run: write it, or change the reason in %s", name, example, where))
			}
		}
	}
	slices.Sort(findings)
	return findings
}

var exampleName = regexp.MustCompile(`\bExample[A-Z_][A-Za-z0-9_]*`)

// checkVariables rejects exported variables of a package, because any importer
// could assign to them. Errors (Err…) are the only exception: the language has
// no other way to write them.
func checkVariables(r *repo) (findings []string) {
	for _, p := range r.packages {
		for _, f := range p.files {
			if f.test || f.generated {
				continue
			}
			for _, decl := range f.syntax.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok || gen.Tok != token.VAR {
					continue
				}
				for _, spec := range gen.Specs {
					for _, id := range spec.(*ast.ValueSpec).Names {
						if !id.IsExported() || isErrorName(id.Name) {
							continue
						}
						findings = append(findings, fmt.Sprintf(
							"%s: var %s can be assigned by every importer: make it a function, a constant or unexported", f.at(id.Pos()), id.Name))
					}
				}
			}
		}
	}
	return findings
}

// isErrorName reports whether name is Err and a word.
func isErrorName(name string) bool {
	rest, ok := strings.CutPrefix(name, "Err")
	return ok && rest != "" && ast.IsExported(rest)
}
