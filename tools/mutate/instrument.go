package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/constant"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/packages"
)

// A mutant is one small change of the code. All mutants are compiled into the
// same programs, and one is enabled by its number.
type mutant struct {
	ID   int
	Key  string // stable as long as the code it changes is
	Line int
}

//go:embed runtime.go.txt
var runtimeText string

// instrument writes the Go files of some packages with all their mutants to
// dir, and returns the mutants and the replacements for the overlay of go
// build.
func instrument(root, dir string, patterns []string) ([]mutant, map[string]string, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
	}, patterns...)
	if err != nil {
		return nil, nil, err
	}
	var all []mutant
	replace := make(map[string]string)
	known := make(map[string]int)
	write := func(name string, content []byte) error {
		copied := filepath.Join(dir, strconv.Itoa(len(replace))+".go.txt") // not a Go file for other tools
		replace[name] = copied
		return os.WriteFile(copied, content, 0o644)
	}
	var added []string
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, nil, p.Errors[0]
		}
		for i, file := range p.Syntax {
			name := p.CompiledGoFiles[i]
			source, err := os.ReadFile(name)
			if err != nil {
				return nil, nil, err
			}
			short, err := filepath.Rel(root, name)
			if err != nil {
				return nil, nil, err
			}
			in := &instrumenter{
				p: p, file: file, source: source, name: filepath.ToSlash(short),
				text: make(map[ast.Node]string), line: make(map[ast.Node]int),
				known: known, first: len(all) + 1, deliberate: make(map[ast.Expr]bool),
				removed: make(map[ast.Stmt]bool),
			}
			in.run()
			all = append(all, in.mutants...)
			file.Comments = nil // comments of moved code would end up anywhere
			var out bytes.Buffer
			// Without positions, which differ in every run, the same code is
			// written in the same way, so that results about its programs
			// remain valid.
			if err := format.Node(&out, token.NewFileSet(), file); err != nil {
				return nil, nil, fmt.Errorf("%s with its mutants: %w", name, err)
			}
			if err := write(name, out.Bytes()); err != nil {
				return nil, nil, err
			}
		}
		added = append(added, filepath.Join(filepath.Dir(p.CompiledGoFiles[0]), "zz_mutants.go"), p.Name)
	}
	count := strconv.Itoa(len(all) + 1)
	for i := 0; i < len(added); i += 2 {
		text := strings.NewReplacer("PACKAGE", added[i+1], "COUNT", count).Replace(runtimeText)
		if err := write(added[i], []byte(text)); err != nil {
			return nil, nil, err
		}
	}
	return all, replace, nil
}

// An instrumenter puts mutants into one file.
type instrumenter struct {
	p          *packages.Package
	file       *ast.File
	source     []byte
	name       string
	fn         string             // the function that is being changed
	signatures []*types.Signature // of it and of the enclosing function literals
	text       map[ast.Node]string
	line       map[ast.Node]int
	deliberate map[ast.Expr]bool // constants that replace mutant.On
	removed    map[ast.Stmt]bool // statements with a mutant that removes them
	known      map[string]int    // how often each key was used
	first      int
	mutants    []mutant
}

func (in *instrumenter) run() {
	for _, decl := range in.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil || isText(f) {
			continue
		}
		in.fn = f.Name.Name
		if f.Recv != nil {
			in.fn = strings.TrimLeft(types.ExprString(f.Recv.List[0].Type), "*") + "." + in.fn
		}
		in.fold(f.Body)
		in.signatures = []*types.Signature{in.p.TypesInfo.Defs[f.Name].Type().(*types.Signature)}
		astutil.Apply(f.Body, in.pre, in.post)
	}
}

// isText reports whether a function is the method that returns the text of an
// error or a value. Such texts have no mutants. That an error is returned, and
// the contents of its fields, do have some.
func isText(f *ast.FuncDecl) bool {
	return f.Recv != nil && (f.Name.Name == "Error" || f.Name.Name == "String")
}

// add adds a mutant of the code at a node and returns its number.
func (in *instrumenter) add(at ast.Node, what, text string) ast.Expr {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 60 {
		text = string(r[:40]) + " … " + string(r[len(r)-17:])
	}
	key := fmt.Sprintf("%s %s: %s %s", in.name, in.fn, what, text)
	if in.known[key]++; in.known[key] > 1 {
		key += " #" + strconv.Itoa(in.known[key])
	}
	m := mutant{ID: in.first + len(in.mutants), Key: key, Line: in.line[at]}
	in.mutants = append(in.mutants, m)
	return lit(strconv.Itoa(m.ID))
}

// fold removes the mistakes of package internal/mutant: they are off unless a
// test enables them, and unreachable code has no mutants.
func (in *instrumenter) fold(body *ast.BlockStmt) {
	is := func(e ast.Expr, value string) bool {
		id, ok := e.(*ast.Ident)
		return ok && in.deliberate[e] && id.Name == value
	}
	constant := func(value string) ast.Expr {
		id := ast.NewIdent(value)
		in.deliberate[id] = true
		return id
	}
	found := false
	astutil.Apply(body, func(c *astutil.Cursor) bool { in.remember(c.Node()); return true }, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "On" && types.ExprString(s.X) == "mutant" {
				found = true
				c.Replace(constant("false"))
			}
		case *ast.UnaryExpr:
			if is(n.X, "false") {
				c.Replace(constant("true"))
			}
		case *ast.BinaryExpr:
			switch {
			case n.Op == token.LAND && (is(n.X, "false") || is(n.Y, "false")):
				c.Replace(constant("false"))
			case n.Op == token.LAND && is(n.Y, "true"), n.Op == token.LOR && is(n.Y, "false"):
				c.Replace(n.X)
			case n.Op == token.LAND && is(n.X, "true"), n.Op == token.LOR && is(n.X, "false"):
				c.Replace(n.Y)
			}
		case *ast.IfStmt:
			switch {
			case is(n.Cond, "true"):
				c.Replace(n.Body)
			case is(n.Cond, "false") && n.Else != nil:
				c.Replace(n.Else)
			case is(n.Cond, "false"):
				c.Replace(&ast.BlockStmt{})
			}
		case *ast.CaseClause:
			if len(n.List) > 0 {
				kept := n.List[:0]
				for _, e := range n.List {
					if !is(e, "false") {
						kept = append(kept, e)
					}
				}
				if n.List = kept; len(kept) == 0 {
					c.Delete()
				}
			}
		}
		return true
	})
	if found {
		in.file.Decls = append(in.file.Decls, &ast.GenDecl{Tok: token.VAR, Specs: []ast.Spec{&ast.ValueSpec{
			Names:  []*ast.Ident{ast.NewIdent("_")},
			Values: []ast.Expr{&ast.SelectorExpr{X: ast.NewIdent("mutant"), Sel: ast.NewIdent("On")}},
		}}})
	}
}

// remember keeps the text of a node before it is changed.
func (in *instrumenter) remember(n ast.Node) {
	if n == nil {
		return
	}
	if _, ok := in.text[n]; ok || !n.Pos().IsValid() {
		return
	}
	from, to := in.p.Fset.Position(n.Pos()).Offset, in.p.Fset.Position(n.End()).Offset
	in.line[n] = in.p.Fset.Position(n.Pos()).Line
	if from >= 0 && to <= len(in.source) && from < to {
		in.text[n] = string(in.source[from:to])
	}
}

func (in *instrumenter) pre(c *astutil.Cursor) bool {
	switch n := c.Node().(type) {
	case *ast.FuncLit:
		in.signatures = append(in.signatures, in.p.TypesInfo.TypeOf(n).(*types.Signature))
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType:
		return false
	case *ast.CallExpr:
		return !in.isLog(n)
	}
	return true
}

// isLog reports whether a call writes a log line. Log lines have no mutants.
func (in *instrumenter) isLog(n *ast.CallExpr) bool {
	s, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	t := in.p.TypesInfo.TypeOf(s.X)
	return t != nil && t.String() == "*log/slog.Logger"
}

// frees reports whether a call only releases, at the end of a function, what
// would be released a little later anyway: a context or a timer.
func (in *instrumenter) frees(n *ast.CallExpr) bool {
	if t := in.p.TypesInfo.TypeOf(n.Fun); t != nil && t.String() == "context.CancelFunc" {
		return true // go vet requires it
	}
	s, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Stop" {
		return false
	}
	t := in.p.TypesInfo.TypeOf(s.X)
	return t != nil && t.String() == "*time.Timer"
}

func (in *instrumenter) post(c *astutil.Cursor) bool {
	switch n := c.Node().(type) {
	case *ast.FuncLit:
		in.signatures = in.signatures[:len(in.signatures)-1]
	case *ast.ReturnStmt:
		in.returns(c, n)
	case *ast.KeyValueExpr:
		in.field(c, n)
	case *ast.AssignStmt:
		in.assignment(c, n)
	case *ast.ExprStmt:
		if x, ok := n.X.(*ast.CallExpr); ok && !in.isLog(x) && types.ExprString(x.Fun) != "panic" {
			in.removable(c, n)
		}
	case *ast.BranchStmt:
		if n.Tok == token.BREAK || n.Tok == token.CONTINUE {
			in.removable(c, n)
		}
	case *ast.DeferStmt:
		if !in.frees(n.Call) {
			in.removable(c, n)
		}
	case *ast.IncDecStmt, *ast.GoStmt, *ast.SendStmt:
		in.removable(c, n.(ast.Stmt))
	case *ast.IfStmt:
		in.branch(n)
	case *ast.ForStmt:
		if n.Cond != nil { // true would be an endless loop
			n.Cond = call("mutWhile", in.add(n.Cond, "false", in.text[n.Cond]), n.Cond)
		}
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for i, e := range clause.(*ast.CaseClause).List {
				if n.Tag == nil {
					clause.(*ast.CaseClause).List[i] = in.condition(e, "")
				}
			}
		}
	case ast.Expr:
		if tv, ok := in.p.TypesInfo.Types[n]; ok && tv.Value != nil {
			in.constant(c, n, tv)
		} else if ok && tv.IsValue() {
			in.expression(c, n)
		}
	}
	return true
}

// replaced records that an expression has replaced another.
func (in *instrumenter) replaced(old, by ast.Expr) ast.Expr {
	in.text[by], in.line[by], in.p.TypesInfo.Types[by] = in.text[old], in.line[old], in.p.TypesInfo.Types[old]
	return by
}

// condition makes a condition true and false. If operands of && or || are also
// omitted, one of the two would show nothing more.
func (in *instrumenter) condition(e ast.Expr, what string) ast.Expr {
	op, text, by := token.ILLEGAL, in.text[e], e
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok {
		op = b.Op
	}
	if op != token.LAND {
		by = or(by, call("mut", in.add(e, what+"true", text)))
	}
	if op != token.LOR {
		by = call("mutWhile", in.add(e, what+"false", text), by)
	}
	return in.replaced(e, by)
}

// branch changes the condition of an if. If everything that it does has already
// been removed, the condition need not become false as well.
func (in *instrumenter) branch(n *ast.IfStmt) {
	if len(n.Body.List) == 1 && n.Else == nil && in.removed[n.Body.List[0]] {
		n.Cond = or(n.Cond, call("mut", in.add(n.Cond, "true", in.text[n.Cond])))
		return
	}
	n.Cond = in.condition(n.Cond, "")
}

// removable adds a mutant that removes a statement of a list.
func (in *instrumenter) removable(c *astutil.Cursor, n ast.Stmt) {
	if c.Index() < 0 {
		return // the statement before a condition or after a loop's body
	}
	by := &ast.IfStmt{
		Cond: &ast.UnaryExpr{Op: token.NOT, X: call("mut", in.add(n, "remove", in.text[n]))},
		Body: &ast.BlockStmt{List: []ast.Stmt{n}},
	}
	in.removed[by] = true
	c.Replace(by)
}

// assignment removes an assignment, or each part of a multiple assignment.
func (in *instrumenter) assignment(c *astutil.Cursor, n *ast.AssignStmt) {
	if n.Tok == token.DEFINE || c.Index() < 0 {
		return
	}
	if len(n.Lhs) == 1 || len(n.Lhs) != len(n.Rhs) {
		if types.ExprString(n.Lhs[0]) != "_" || len(n.Lhs) > 1 {
			in.removable(c, n)
		}
		return
	}
	for i, left := range n.Lhs {
		if t := in.typeExpr(in.p.TypesInfo.TypeOf(left)); t != nil {
			id := in.add(left, "remove", in.text[left]+" = "+in.text[n.Rhs[i]])
			n.Rhs[i] = callOf("mutIf", t, id, n.Rhs[i], left)
		}
	}
}

// returns changes what a function returns: true becomes false and vice versa,
// and any other nonzero value becomes zero. A return without results is
// removed.
func (in *instrumenter) returns(c *astutil.Cursor, n *ast.ReturnStmt) {
	results := in.signatures[len(in.signatures)-1].Results()
	if results.Len() == 0 {
		in.removable(c, n)
		return
	}
	if len(n.Results) != results.Len() {
		return // named results, or one call with all of them
	}
	last := results.Len() - 1
	if t := results.At(last).Type().String(); t == "error" && !in.p.TypesInfo.Types[n.Results[last]].IsNil() {
		// Values returned beside an error do not matter. That an error is
		// returned at all is covered by the mutants of the condition before it.
		if in.text[n.Results[last]] != "err" {
			n.Results[last] = in.zeroed(n.Results[last], results.At(last).Type(), "return ")
		}
		return
	}
	for i, e := range n.Results {
		n.Results[i] = in.zeroed(e, results.At(i).Type(), "return ")
	}
}

// field omits a field of a struct literal.
func (in *instrumenter) field(c *astutil.Cursor, n *ast.KeyValueExpr) {
	lit, ok := c.Parent().(*ast.CompositeLit)
	if !ok {
		return
	}
	s, ok := in.p.TypesInfo.TypeOf(lit).Underlying().(*types.Struct)
	for i := 0; ok && i < s.NumFields(); i++ {
		if f := s.Field(i); f.Name() == types.ExprString(n.Key) {
			n.Value = in.zeroed(n.Value, f.Type(), f.Name()+": ")
		}
	}
}

// zeroed returns e, or the zero value of type t in its place.
func (in *instrumenter) zeroed(e ast.Expr, t types.Type, what string) ast.Expr {
	tv, text := in.p.TypesInfo.Types[e], in.text[e]
	if isKind(t, types.IsBoolean) {
		if tv.Value != nil {
			return call("mutIf", in.add(e, what+"not", text), e, &ast.UnaryExpr{Op: token.NOT, X: e})
		}
		return in.condition(e, what)
	}
	of := in.typeExpr(t)
	if of == nil || tv.IsNil() || isZero(tv.Value) || strings.HasSuffix(text, "{}") {
		return e
	}
	return callOf("mutZero", of, in.add(e, what+"zero for", text), e)
}

func isZero(v constant.Value) bool {
	return v != nil && (v.Kind() == constant.String && constant.StringVal(v) == "" || v.Kind() != constant.String && constant.Sign(v) == 0)
}

func isKind(t types.Type, info types.BasicInfo) bool {
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0
}

// constant changes a number: one up to 2 by one, a greater one by a factor of
// 2, in each direction.
func (in *instrumenter) constant(c *astutil.Cursor, e ast.Expr, tv types.TypeAndValue) {
	v, exact := constant.Int64Val(constant.ToInt(tv.Value))
	t := types.Default(tv.Type)
	switch t.String() {
	case "int", "int64", "uint64", "time.Duration":
	default:
		return // a name for one of several values, or a byte
	}
	if !exact || v < 0 || v > 1<<40 {
		return
	}
	switch parent := c.Parent().(type) {
	case *ast.KeyValueExpr, *ast.CaseClause, *ast.ReturnStmt:
		return // an index, a case of a switch, or the argument of make
	case *ast.CallExpr:
		if strings.HasPrefix(in.text[parent.Fun], "fmt.") || v == 0 {
			return // text for people, or unused
		}
	case *ast.BinaryExpr:
		_, compares := comparisons[parent.Op]
		if v <= 2 && (compares || parent.Op == token.EQL || parent.Op == token.NEQ) {
			return // see expression and condition
		}
	}
	if parent, ok := c.Parent().(ast.Expr); ok && in.p.TypesInfo.Types[parent].Value != nil {
		return // part of a greater one
	}
	of, text, by := in.typeExpr(t), in.text[e], ast.Expr(e)
	number := func(n int64) ast.Expr { return lit(strconv.FormatInt(n, 10)) }
	values := []int64{v * 2, v / 2}
	if v <= 2 {
		values = []int64{v + 1, v - 1}[:min(v+1, 2)] // nothing below 0
	}
	for _, w := range values {
		by = callOf("mutIf", of, in.add(e, text+" to "+strconv.FormatInt(w, 10)+" in", in.text[c.Parent()]), by, number(w))
	}
	c.Replace(in.replaced(e, by))
}

var comparisons = map[token.Token]struct{ name, becomes string }{
	token.LSS: {"mutLess", "<="}, token.GTR: {"mutMore", ">="}, token.LEQ: {"mutLessEqual", "<"}, token.GEQ: {"mutMoreEqual", ">"},
}

var arithmetic = map[token.Token]struct{ name, becomes string }{
	token.ADD: {"mutAdd", "-"}, token.SUB: {"mutSub", "+"}, token.MUL: {"mutMul", "/"}, token.QUO: {"mutQuo", "*"},
	token.REM: {"mutRem", "/"}, token.AND: {"mutAnd", "|"}, token.OR: {"mutOr", "&"}, token.SHL: {"mutShl", ">>"}, token.SHR: {"mutShr", "<<"},
}

func (in *instrumenter) expression(c *astutil.Cursor, e ast.Expr) {
	by := e
	switch n := e.(type) {
	case *ast.CallExpr:
		id, ok := n.Fun.(*ast.Ident)
		if !ok || !in.p.TypesInfo.Types[n.Fun].IsBuiltin() || id.Name != "max" && id.Name != "min" {
			return
		}
		args := []ast.Expr{nil}
		for _, arg := range n.Args {
			number := in.add(n, id.Name+" without", in.text[arg]+" in "+in.text[n])
			if args[0] == nil {
				args[0] = number
			}
			args = append(args, arg)
		}
		c.Replace(in.replaced(e, call("mut"+strings.ToUpper(id.Name[:1])+id.Name[1:], args...)))
		return
	case *ast.UnaryExpr:
		if n.Op != token.NOT {
			return
		}
	case *ast.BinaryExpr:
		if o, ok := arithmetic[n.Op]; ok {
			if isKind(in.p.TypesInfo.TypeOf(n), types.IsNumeric) && (n.Op != token.SHL || in.p.TypesInfo.Types[n.X].Value == nil) {
				c.Replace(in.replaced(e, call(o.name, in.add(n, n.Op.String()+" to "+o.becomes+" in", in.text[n]), n.X, n.Y)))
			}
			return
		}
		if o, ok := comparisons[n.Op]; ok {
			by = call(o.name, in.add(n, n.Op.String()+" to "+o.becomes+" in", in.text[n]), n.X, n.Y)
		}
		if n.Op == token.LAND || n.Op == token.LOR {
			n.X, n.Y = in.operand(n, n.X), in.operand(n, n.Y)
		}
	default:
		return
	}
	switch parent := c.Parent().(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause, *ast.ReturnStmt, *ast.KeyValueExpr, *ast.ParenExpr, *ast.UnaryExpr:
	case *ast.BinaryExpr:
		if parent.Op == token.EQL || parent.Op == token.NEQ {
			by = in.condition(in.replaced(e, by), "")
		}
	default:
		by = in.condition(in.replaced(e, by), "")
	}
	if by != e {
		c.Replace(in.replaced(e, by))
	}
}

// operand omits one operand of && or ||.
func (in *instrumenter) operand(n *ast.BinaryExpr, e ast.Expr) ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == n.Op {
		return e // its own operands are omitted
	}
	id := in.add(e, "without", in.text[e]+" in "+in.text[n])
	if n.Op == token.LOR {
		return in.replaced(e, call("mutWhile", id, e))
	}
	return in.replaced(e, or(e, call("mut", id)))
}

// typeExpr returns a type in its form for this file, or nil if it has none.
func (in *instrumenter) typeExpr(t types.Type) ast.Expr {
	if t == nil {
		return nil
	}
	known := true
	text := types.TypeString(types.Default(t), func(p *types.Package) string {
		if p == in.p.Types {
			return ""
		}
		for _, spec := range in.file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); path == p.Path() {
				if spec.Name != nil {
					return spec.Name.Name
				}
				return p.Name()
			}
		}
		known = false
		return p.Name()
	})
	e, err := parser.ParseExpr(text)
	if err != nil || !known {
		return nil
	}
	return e
}

// or returns x || y, where x is evaluated first.
func or(x, y ast.Expr) ast.Expr {
	return &ast.ParenExpr{X: &ast.BinaryExpr{X: &ast.ParenExpr{X: x}, Op: token.LOR, Y: y}}
}

func call(name string, args ...ast.Expr) ast.Expr {
	return &ast.CallExpr{Fun: ast.NewIdent(name), Args: args}
}

func callOf(name string, t ast.Expr, args ...ast.Expr) ast.Expr {
	return &ast.CallExpr{Fun: &ast.IndexExpr{X: ast.NewIdent(name), Index: t}, Args: args}
}

func lit(number string) ast.Expr { return &ast.BasicLit{Kind: token.INT, Value: number} }
