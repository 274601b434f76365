package arch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
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
// Each rule returns its findings, one per line.

// A repo is the input of the rules.
type repo struct {
	modules  []module   // the deepest directory first
	packages []*pkg     // sorted by dir
	texts    []textFile // every file that is text, Go files included
}

// A module is a go.mod file.
type module struct {
	dir  string // of go.mod, slash-separated, "." for the repository's root
	path string // its module path
	mod  string // its text
}

// A pkg is one directory with Go files.
type pkg struct {
	dir    string // slash-separated, "." for the repository's root
	module module
	files  []*goFile
}

type goFile struct {
	name   string // path from the repository's root
	test   bool   // its name ends in _test.go
	syntax *ast.File
	fset   *token.FileSet
}

type textFile struct {
	name string
	text string
}

// imports returns the import paths of f with their positions.
func (f *goFile) imports() map[string]string {
	m := make(map[string]string)
	for _, spec := range f.syntax.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		m[p] = fmt.Sprintf("%s:%d", f.name, f.fset.Position(spec.Pos()).Line)
	}
	return m
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
			case strings.HasPrefix(base, "."), strings.HasPrefix(base, "_"), base == "bin", base == "build", base == "target", base == "node_modules":
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
		switch {
		case inTestdata(name):
		case base == "go.mod":
			r.modules = append(r.modules, module{dir: dir, path: modulePath(string(data)), mod: string(data)})
		case strings.HasSuffix(base, ".go"):
			syntax, err := parser.ParseFile(fset, name, data, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return err
			}
			p := byDir[dir]
			if p == nil {
				p = &pkg{dir: dir}
				byDir[dir] = p
				r.packages = append(r.packages, p)
			}
			p.files = append(p.files, &goFile{
				name:   name,
				test:   strings.HasSuffix(base, "_test.go"),
				syntax: syntax,
				fset:   fset,
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
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
			return f[1]
		}
	}
	return ""
}

// dirOf returns the directory, from the repository's root, of the package with
// an import path, and its module. ok is false for packages from elsewhere.
func (r *repo) dirOf(importPath string) (dir string, m module, ok bool) {
	for _, m := range r.modules {
		if importPath == m.path {
			return m.dir, m, true
		}
		if rest, found := strings.CutPrefix(importPath, m.path+"/"); found {
			return path.Join(m.dir, rest), m, true
		}
	}
	return "", module{}, false
}

// picture finds the lines of packages in ARCHITECTURE.md.
var picture = regexp.MustCompile("(?s)```packages\n(.*?)```")

// checkImports checks that a package imports only packages of lower lines of
// the picture, and none of those for tests, which are not in it. Tests import
// what they like, except internal packages of other modules.
func checkImports(r *repo) (findings []string) {
	find := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	lines, err := r.picture()
	if err != nil {
		return []string{err.Error()}
	}
	for _, p := range r.packages {
		from, inPicture := lines[p.dir]
		for _, f := range p.files {
			for imp, at := range f.imports() {
				dir, m, ok := r.dirOf(imp)
				if !ok || dir == p.dir {
					continue
				}
				// Go itself would allow it: the paths of the other
				// modules begin with the root module's.
				if m.dir != p.module.dir && slices.Contains(strings.Split(dir, "/"), "internal") && !(f.test && dir == "internal/kubetest") {
					find("%s: imports %s, which is internal to another module: an import across modules needs a published package", at, imp)
				}
				if to, ok := lines[dir]; inPicture && !f.test && (!ok || to <= from) {
					find("%s: imports %s, which the picture in ARCHITECTURE.md does not have below %s: if the design has changed, change the picture", at, dir, p.dir)
				}
			}
		}
	}
	slices.Sort(findings)
	return findings
}

// picture returns the line of each package in the picture of ARCHITECTURE.md. A
// name is a directory, or one below server/internal.
func (r *repo) picture() (map[string]int, error) {
	const descriptions = 61 // the column where they begin
	i := slices.IndexFunc(r.texts, func(f textFile) bool { return f.name == "ARCHITECTURE.md" })
	if i < 0 {
		return nil, errors.New("no file ARCHITECTURE.md")
	}
	block := picture.FindStringSubmatch(r.texts[i].text)
	if block == nil {
		return nil, errors.New("ARCHITECTURE.md: no picture of packages")
	}
	lines := make(map[string]int)
	for n, line := range strings.Split(block[1], "\n") {
		for _, name := range strings.Fields(line[:min(len(line), descriptions)]) {
			known := func(dir string) bool {
				return slices.ContainsFunc(r.packages, func(p *pkg) bool { return p.dir == dir })
			}
			switch dir := "server/internal/" + name; {
			case known(name):
				lines[name] = n
			case known(dir):
				lines[dir] = n
			default:
				return nil, fmt.Errorf("ARCHITECTURE.md: the picture has %s, which is not a package", name)
			}
		}
	}
	return lines, nil
}

// checkZeroDependencies checks that the root module uses only the standard
// library: in its go.mod, and in every import, tests included.
func checkZeroDependencies(r *repo) (findings []string) {
	root := r.modules[len(r.modules)-1]
	for line := range strings.Lines(root.mod) {
		verb, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		verb, _, _ = strings.Cut(verb, "(")
		if slices.Contains([]string{"require", "replace", "tool", "exclude"}, verb) {
			findings = append(findings, fmt.Sprintf(
				"go.mod: %q: the root module has no dependencies and no tools: they belong in another module", strings.TrimSpace(line)))
		}
	}
	for _, p := range r.packages {
		if p.module.dir != "." {
			continue
		}
		for _, f := range p.files {
			for imp, at := range f.imports() {
				first, _, _ := strings.Cut(imp, "/")
				_, m, ours := r.dirOf(imp)
				if imp == "C" || strings.Contains(first, ".") && !(ours && m.dir == ".") {
					findings = append(findings, fmt.Sprintf("%s: imports %s: the root module uses the standard library only, in tests too", at, imp))
				}
			}
		}
	}
	slices.Sort(findings)
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
			if outsidePath.MatchString(line) || slices.ContainsFunc(outsideTexts, func(s string) bool { return strings.Contains(line, s) }) {
				findings = append(findings, fmt.Sprintf(
					"%s:%d: %q names a path of one machine: name one inside the repository, or one that any reader has", f.name, n, strings.TrimSpace(line)))
			}
		}
	}
	return findings
}

// firstWord finds the first word of a doc comment, without an article.
var firstWord = regexp.MustCompile(`^(?:(?:A|An|The) )?(\w*)`)

// checkDocs checks that the doc comment of a declaration begins with its name.
func checkDocs(r *repo) (findings []string) {
	for _, p := range r.packages {
		for _, f := range p.files {
			var outer *ast.CommentGroup // above a declaration without parentheses
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				name, doc := new(ast.Ident), (*ast.CommentGroup)(nil)
				switch d := n.(type) {
				case *ast.FuncDecl:
					name, doc = d.Name, d.Doc
				case *ast.GenDecl:
					if outer = d.Doc; d.Lparen.IsValid() {
						outer = nil
					}
				case *ast.TypeSpec:
					name, doc = d.Name, cmp.Or(d.Doc, outer)
				case *ast.ValueSpec:
					name, doc = d.Names[0], cmp.Or(d.Doc, outer)
				}
				if first := firstWord.FindStringSubmatch(doc.Text())[1]; doc.Text() != "" && first != name.Name && !f.test && !ast.IsGenerated(f.syntax) {
					findings = append(findings, fmt.Sprintf("%s:%d: the comment of %s begins with %q: begin with the name", f.name, f.fset.Position(name.Pos()).Line, name.Name, first))
				}
				_, local := n.(*ast.BlockStmt)
				return !local
			})
		}
	}
	return findings
}
