// Package arch contains the rules of the repository as tests: imports follow
// the picture in ARCHITECTURE.md, the library needs only the standard library,
// exported names are listed, and links between pages work. It exports nothing.
package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// The rules read files, not packages: every file counts, whatever its build
// constraints, so that a rule cannot hold on one system and fail on another.

// A repo is the input of the rules.
type repo struct {
	fset     *token.FileSet
	modules  []module          // the deepest directory first
	packages []*pkg            // sorted by dir
	texts    map[string]string // every file that is text, by its path from the repository's root
}

// A module is a go.mod file.
type module struct {
	dir  string // of go.mod, slash-separated, "." for the repository's root
	path string // its module path
}

// A pkg is one directory with Go files.
type pkg struct {
	dir    string // slash-separated, "." for the repository's root
	module module
	files  []*goFile
}

type goFile struct {
	test   bool // its name ends in _test.go
	syntax *ast.File
}

// An imported is one import of a file.
type imported struct {
	path string
	at   token.Position
	by   *pkg
	test bool // the file is a test
}

// imports returns all imports.
func (r *repo) imports() (all []imported) {
	for _, p := range r.packages {
		for _, f := range p.files {
			for _, spec := range f.syntax.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				all = append(all, imported{path, r.fset.Position(spec.Pos()), p, f.test})
			}
		}
	}
	return all
}

var loadRepository = sync.OnceValues(func() (*repo, error) { return load(os.DirFS("../..")) })

func repository(t *testing.T) *repo {
	t.Helper()
	return must.Get(loadRepository())(t)
}

// load reads the repository in fsys. It omits directories named bin and build,
// and names that begin with a dot or an underscore, except the few hidden files
// that are written by hand. Go files in testdata are data.
func load(fsys fs.FS) (*repo, error) {
	r := &repo{fset: token.NewFileSet(), texts: make(map[string]string)}
	byDir := make(map[string]*pkg)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		base, dir := path.Base(name), path.Dir(name)
		switch {
		case err != nil, name == ".", base == ".ci", base == ".github":
			return err
		case d.IsDir():
			if base[0] == '.' || base[0] == '_' || slices.Contains([]string{"bin", "build", "target", "node_modules"}, base) {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular(), base == ".git": // a file in a linked work tree
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0 {
			r.texts[name] = string(data)
		}
		switch {
		case inTestdata(name):
		case base == "go.mod":
			r.modules = append(r.modules, module{dir: dir, path: modulePath.FindStringSubmatch(string(data))[1]})
		case strings.HasSuffix(base, ".go"):
			syntax, err := parser.ParseFile(r.fset, name, data, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return err
			}
			if byDir[dir] == nil {
				byDir[dir] = &pkg{dir: dir}
				r.packages = append(r.packages, byDir[dir])
			}
			byDir[dir].files = append(byDir[dir].files, &goFile{strings.HasSuffix(base, "_test.go"), syntax})
		}
		return nil
	})
	slices.SortFunc(r.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	slices.SortFunc(r.modules, func(a, b module) int { return len(b.dir) - len(a.dir) }) // "." is the shortest
	for _, p := range r.packages {
		p.module = r.modules[slices.IndexFunc(r.modules, func(m module) bool {
			return m.dir == "." || strings.HasPrefix(p.dir+"/", m.dir+"/")
		})]
	}
	return r, err
}

var modulePath = regexp.MustCompile(`(?m)^module (\S+)$`)

func inTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

// isInternal reports whether a directory belongs to an internal package.
func isInternal(dir string) bool { return slices.Contains(strings.Split(dir, "/"), "internal") }

// dirOf returns the directory, from the repository's root, of the package with
// an import path, and its module. ok is false for packages from elsewhere.
func (r *repo) dirOf(importPath string) (dir string, m module, ok bool) {
	for _, m := range r.modules {
		if rest, found := strings.CutPrefix(importPath+"/", m.path+"/"); found {
			return path.Join(m.dir, rest), m, true
		}
	}
	return "", module{}, false
}

// picture finds the lines of packages in ARCHITECTURE.md.
var picture = regexp.MustCompile("(?s)```packages\n(.*?)```")

// pictured returns the line of each package in the picture of ARCHITECTURE.md.
// A name is a directory, or one below server/internal.
func (r *repo) pictured(t *testing.T) map[string]int {
	const descriptions = 61 // the column where they begin
	block := picture.FindStringSubmatch(r.texts["ARCHITECTURE.md"])
	if block == nil {
		t.Fatal("ARCHITECTURE.md: no picture of packages")
	}
	lines := make(map[string]int)
	for n, line := range strings.Split(block[1], "\n") {
		for _, name := range strings.Fields(line[:min(len(line), descriptions)]) {
			i := slices.IndexFunc(r.packages, func(p *pkg) bool { return p.dir == name || p.dir == "server/internal/"+name })
			if i < 0 {
				t.Fatalf("ARCHITECTURE.md: the picture has %s, which is not a package", name)
			}
			lines[r.packages[i].dir] = n
		}
	}
	return lines
}

// TestImports checks that a package imports only packages of lower lines of the
// picture, and none of those for tests, which are not in it. Tests import what
// they like, except internal packages of other modules that are not for tests.
func TestImports(t *testing.T) {
	r := repository(t)
	lines := r.pictured(t)
	for _, i := range r.imports() {
		dir, m, ok := r.dirOf(i.path)
		if !ok || dir == i.by.dir {
			continue
		}
		from, inPicture := lines[i.by.dir]
		forTests := i.test || !inPicture
		to, ok := lines[dir]
		// Go itself would allow it: the paths of the other modules begin with the
		// root module's.
		if m.dir != i.by.module.dir && isInternal(dir) && (ok || !forTests) {
			t.Errorf("%v: imports %s, which is internal to another module: "+
				"an import across modules needs a published package", i.at, i.path)
		}
		if !forTests && (!ok || to <= from) {
			t.Errorf("%v: imports %s, which the picture in ARCHITECTURE.md does not have below %s: "+
				"if the design has changed, change the picture", i.at, dir, i.by.dir)
		}
	}
}

// TestZeroDependencies checks that the root module uses only the standard
// library: in its go.mod, and in every import, tests included.
func TestZeroDependencies(t *testing.T) {
	r := repository(t)
	for line := range strings.Lines(r.texts["go.mod"]) {
		verb := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '(' || c == '\n' })
		if len(verb) > 0 && slices.Contains([]string{"require", "replace", "tool", "exclude"}, verb[0]) {
			t.Errorf("go.mod: %q: the root module has no dependencies and no tools: they belong in another module", line)
		}
	}
	for _, i := range r.imports() {
		first, _, _ := strings.Cut(i.path, "/")
		_, m, ours := r.dirOf(i.path)
		if i.by.module.dir == "." && (i.path == "C" || strings.Contains(first, ".") && !(ours && m.dir == ".")) {
			t.Errorf("%v: imports %s: the root module uses the standard library only, in tests too", i.at, i.path)
		}
	}
}

// templateSetter finds calls of cobra's methods that link text/template.
var templateSetter = regexp.MustCompile(`\.Set(Version|Help|Usage)Template\(`)

// TestTemplates checks that no code uses text/template, directly or through
// cobra: see docs/decisions/templates.md. A test in tools/release looks for it
// in the binary, where code of others can bring it.
func TestTemplates(t *testing.T) {
	r := repository(t)
	for _, i := range r.imports() {
		if !i.test && (i.path == "text/template" || i.path == "html/template") {
			t.Errorf("%v: imports %s, with which the linker keeps the exported methods of all types", i.at, i.path)
		}
	}
	for name, text := range r.texts {
		call := templateSetter.FindString(text)
		if call != "" && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !inTestdata(name) {
			t.Errorf("%s: calls %s…), which links text/template", name, call)
		}
	}
}

// outsidePath finds the beginning of an absolute path on a particular machine.
// A path inside a URL or below another directory does not count. The names are
// assembled here so that this file follows the rule itself.
var outsidePath = regexp.MustCompile(`(?:^|[^A-Za-z0-9_.~})%*/-]|//)(/(?:` + strings.Join([]string{"work", "home", "root", "Users"}, "|") + `)/)`)

// outsideTexts are texts about the environment in which the repository was
// written.
var outsideTexts = []string{".." + "/shared", "proxy.golang" + ".org"}

// TestSelfContained checks that the files do not depend on a particular
// machine.
func TestSelfContained(t *testing.T) {
	for name, text := range repository(t).texts {
		n := 0
		for line := range strings.Lines(text) {
			n++
			if outsidePath.MatchString(line) || slices.ContainsFunc(outsideTexts, func(s string) bool { return strings.Contains(line, s) }) {
				t.Errorf("%s:%d: %q names a path of one machine: name one inside the repository, or one that any reader has", name, n, strings.TrimSpace(line))
			}
		}
	}
}

// firstWord finds the first word of a doc comment, without an article.
var firstWord = regexp.MustCompile(`^(?:(?:A|An|The) )?(\w*)`)

// TestDocs checks that the doc comment of a declaration begins with its name.
func TestDocs(t *testing.T) {
	r := repository(t)
	check := func(name *ast.Ident, doc *ast.CommentGroup) {
		if first := firstWord.FindStringSubmatch(doc.Text())[1]; doc.Text() != "" && first != name.Name {
			t.Errorf("%v: the comment of %s begins with %q: begin with the name", r.fset.Position(name.Pos()), name.Name, first)
		}
	}
	for _, p := range r.packages {
		for _, f := range p.files {
			if f.test || ast.IsGenerated(f.syntax) {
				continue
			}
			for _, d := range f.syntax.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					check(d.Name, d.Doc)
					continue
				}
				d := d.(*ast.GenDecl)
				for _, spec := range d.Specs {
					name, doc := new(ast.Ident), (*ast.CommentGroup)(nil)
					switch s := spec.(type) {
					case *ast.TypeSpec:
						name, doc = s.Name, s.Doc
					case *ast.ValueSpec:
						name, doc = s.Names[0], s.Doc
					}
					if doc == nil && !d.Lparen.IsValid() && d.Tok != token.IMPORT {
						doc = d.Doc
					}
					check(name, doc)
				}
			}
		}
	}
}
