package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// checkGo checks the comments of a Go file, and its strings unless it is a test.
func checkGo(path string, src []byte) []finding {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []finding{{path, 1, err.Error()}}
	}
	g := goChecker{path: path, fset: fset, lines: strings.Split(string(src), "\n")}
	for _, group := range file.Comments {
		g.comments(group)
	}
	if !strings.HasSuffix(path, "_test.go") {
		ast.Inspect(file, g.visit)
	}
	return g.found
}

type goChecker struct {
	path  string
	fset  *token.FileSet
	lines []string
	found []finding
}

// comments checks comments that follow each other without an empty line.
func (g *goChecker) comments(group *ast.CommentGroup) {
	var texts []string
	example := false // what an example prints is as wide as it is
	for _, c := range group.List {
		at := g.fset.Position(c.Pos())
		trailing := strings.TrimSpace(g.lines[at.Line-1][:at.Column-1]) != ""
		for i, text := range strings.Split(c.Text, "\n") {
			text = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "//"), "/*"), " ")
			example = example || strings.HasPrefix(strings.ToLower(text), "output:")
			if !trailing && !example && !strings.HasPrefix(text, "\t") && !strings.HasPrefix(text, "Code generated ") {
				g.found = append(g.found, tooLong(g.path, at.Line+i, g.lines[at.Line-1+i], longestComment)...)
			}
			texts = append(texts, text)
		}
	}
	g.found = append(g.found, checkLines(g.path, g.fset.Position(group.Pos()).Line, texts)...)
}

// visit checks strings. Those that are added up are one text.
func (g *goChecker) visit(n ast.Node) bool {
	var p paragraph
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op != token.ADD {
			return true
		}
		g.add(&p, n)
	case *ast.BasicLit:
		g.add(&p, n)
	default:
		return true
	}
	g.found = append(g.found, phrases(g.path, p)...)
	return false
}

// add adds the strings of a sum to a paragraph, and visits its other parts.
func (g *goChecker) add(p *paragraph, e ast.Expr) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		g.add(p, e.X)
		g.add(p, e.Y)
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if e.Kind != token.STRING || err != nil {
			return
		}
		line := g.fset.Position(e.Pos()).Line
		for i, part := range strings.Split(text, "\n") {
			switch {
			case i == 0:
				p.add(line, part, "")
				continue
			case e.Value[0] == '`':
				line++ // lines of a raw string are lines of the file
			}
			if part = strings.TrimSpace(part); part == "" {
				part = "\n" // no phrase continues here
			}
			p.add(line, part, " ")
		}
	default:
		p.add(g.fset.Position(e.Pos()).Line, "…", "")
		ast.Inspect(e, g.visit)
	}
}
