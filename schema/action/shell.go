package action

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A walker collects the commands of scripts.
type walker struct {
	out   *Action
	steps int
	depth int
	// functions are the bodies of the functions under way, so that a recursive one is walked once.
	functions []*syntax.Stmt
	// declared are the functions, and called the bodies of those that a command called.
	declared []*syntax.FuncDecl
	called   map[*syntax.Stmt]bool
}

// script adds the facts of a script that runs in a folder.
func (a *Action) script(script, folder string) {
	defer func() {
		if p := recover(); p != nil { // of the parser, which reads what agents write
			a.unparsed(fmt.Sprintf("the parser failed: %v", p))
		}
	}()
	w := &walker{out: a, called: make(map[*syntax.Stmt]bool)}
	s := &scope{vars: make(map[string]values), functions: make(map[string]*syntax.Stmt), exported: make(map[string]bool), odd: make(map[string]bool)}
	s.vars["HOME"] = constant("~")
	if folder != "" {
		s.vars["PWD"] = constant(folder)
	} else {
		s.vars["PWD"] = values{open: true}
	}
	w.parse(s, script)
	s.args = nil
	for len(w.declared) > 0 { // they may be called in ways that are not seen
		f := w.declared[0]
		if w.declared = w.declared[1:]; !w.called[f.Body] {
			w.function(s, f.Body)
		}
	}
}

// step counts work, and reports whether more is allowed.
func (w *walker) step() bool {
	if w.steps++; w.steps > maxSteps {
		w.out.unparsed("it takes too many steps to parse")
		return false
	}
	return true
}

// enter goes one level deeper, if that is allowed. Then the caller calls leave.
func (w *walker) enter() bool {
	if w.depth == maxDepth {
		w.out.unparsed(fmt.Sprintf("its commands are nested deeper than %d levels", maxDepth))
		return false
	}
	w.depth++
	return w.step()
}

func (w *walker) leave() { w.depth-- }

// parse walks a script. Its statements before a syntax error count.
func (w *walker) parse(s *scope, script string) {
	switch {
	case len(script) > maxScript:
		w.out.unparsed(fmt.Sprintf("the command has more than %d bytes", maxScript))
		return
	case nestsTooDeep(script):
		w.out.unparsed(fmt.Sprintf("its commands are nested deeper than %d levels", maxDepth))
		return
	case !w.enter():
		return
	}
	defer w.leave()
	for stmt, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(strings.NewReader(script)) {
		if err != nil { // the parser yields once more after an error, so the loop must not end here
			w.out.unparsed("the shell syntax is not valid: " + err.Error())
			continue
		}
		w.statement(s, stmt)
	}
}

// maxNesting is the number of open brackets and compound commands that are parsed, inside quoted text
// too. It bounds the stack of the parser.
const maxNesting = 500

// nestsTooDeep reports whether a script may nest too deep for the parser.
func nestsTooDeep(script string) bool {
	open := 0
	for _, c := range []byte(script) {
		switch c {
		case '(', '{', '[':
			open++
		case ')', '}', ']':
			open = max(open-1, 0)
		}
		if open > maxNesting {
			return true
		}
	}
	compound, prefixes := 0, 0
	for word := range strings.FieldsFuncSeq(script, func(r rune) bool { return strings.ContainsRune(" \t\n;&|`", r) }) {
		switch word {
		case "time", "!", "coproc", "function":
			prefixes++
		case "if", "while", "until", "for", "case", "select":
			compound, prefixes = compound+1, 0
		case "fi", "done", "esac":
			compound, prefixes = max(compound-1, 0), 0
		default:
			prefixes = 0
		}
		if compound > maxNesting || prefixes > maxNesting {
			return true
		}
	}
	return false
}

// statements walks statements in order.
func (w *walker) statements(s *scope, all []*syntax.Stmt) {
	for _, stmt := range all {
		w.statement(s, stmt)
	}
}

// statement walks one statement.
func (w *walker) statement(s *scope, stmt *syntax.Stmt) {
	if stmt == nil || !w.enter() {
		return
	}
	defer w.leave()
	w.piped(s, stmt, "")
}

// piped walks a statement whose output goes to the command with the name to, if any.
func (w *walker) piped(s *scope, stmt *syntax.Stmt, to string) {
	in := w.input(s, stmt.Redirs)
	if call, ok := stmt.Cmd.(*syntax.CallExpr); ok {
		w.call(s, call, stmt.Redirs, in, to)
		return
	}
	if _, ok := stmt.Cmd.(*syntax.DeclClause); !ok {
		for _, r := range w.redirects(s, stmt.Redirs) {
			w.redirected(s, r)
		}
	}
	if in.given {
		defer func(before input) { s.in = before }(s.in)
		s.in = in
	}
	if stmt.Background {
		s = s.copy()
	}
	w.compound(s, stmt, to)
}

// compound walks a statement that is not a simple command.
func (w *walker) compound(s *scope, stmt *syntax.Stmt, to string) {
	switch c := stmt.Cmd.(type) {
	case *syntax.Block:
		w.statements(s, c.Stmts)
	case *syntax.Subshell:
		w.statements(s.copy(), c.Stmts)
	case *syntax.BinaryCmd:
		w.binary(s, c, to)
	case *syntax.IfClause:
		w.branches(s, c)
	case *syntax.WhileClause:
		w.loop(s, func(s *scope) {
			w.statements(s, c.Cond)
			w.statements(s, c.Do)
		})
	case *syntax.ForClause:
		w.forLoop(s, c)
	case *syntax.CaseClause:
		w.cases(s, c)
	case *syntax.FuncDecl:
		w.declare(s, c)
	case *syntax.DeclClause:
		w.assign(s, c.Args)
		declared(s, c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.statement(s, c.Stmt)
		}
	case *syntax.CoprocClause:
		w.statement(s.copy(), c.Stmt)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		w.substitutions(s, c)
	}
}

// binary walks a pipeline or a list.
func (w *walker) binary(s *scope, c *syntax.BinaryCmd, to string) {
	if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
		w.statement(s, c.X)
		maybe := s.copy()
		w.statement(maybe, c.Y)
		s.join(maybe)
		return
	}
	// The parts of a pipeline run side by side, each in its own subshell.
	left, right := s.copy(), s.copy()
	if w.enter() {
		w.piped(left, c.X, w.nameOf(s, c.Y))
		w.leave()
	}
	right.in = input{given: true, open: true}
	if text, ok := w.printed(s, c.X); ok {
		right.in = input{given: true, text: text}
	}
	if w.enter() {
		w.piped(right, c.Y, to)
		w.leave()
	}
}

// nameOf returns the name of the first command of a statement, without wrappers.
func (w *walker) nameOf(s *scope, stmt *syntax.Stmt) string {
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return ""
		}
		probe := &walker{out: &Action{}, depth: w.depth, steps: w.steps, functions: w.functions, called: make(map[*syntax.Stmt]bool)}
		probe.call(s.copy(), c, nil, input{}, "")
		w.steps = probe.steps
		if n := len(probe.out.Commands); n > 0 {
			return probe.out.Commands[n-1].Name
		}
	case *syntax.BinaryCmd:
		return w.nameOf(s, c.X)
	case *syntax.Block:
		if len(c.Stmts) > 0 {
			return w.nameOf(s, c.Stmts[0])
		}
	case *syntax.Subshell:
		if len(c.Stmts) > 0 {
			return w.nameOf(s, c.Stmts[0])
		}
	}
	return ""
}

// branches walks the branches of an if. After it, a variable may have the value of any branch.
func (w *walker) branches(s *scope, c *syntax.IfClause) {
	if !w.enter() {
		return
	}
	defer w.leave()
	w.statements(s, c.Cond)
	yes := s.copy()
	w.statements(yes, c.Then)
	switch {
	case c.Else == nil:
	case len(c.Else.Cond) == 0:
		w.statements(s, c.Else.Then)
	default:
		w.branches(s, c.Else)
	}
	s.join(yes)
}

// cases walks the branches of a case.
func (w *walker) cases(s *scope, c *syntax.CaseClause) {
	w.substitutions(s, c.Word)
	before := s.copy()
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.substitutions(s, p)
		}
		branch := before.copy()
		branch.join(s) // a branch may continue in the next one
		w.statements(branch, item.Stmts)
		s.join(branch)
	}
}

// loop walks the body of a loop until it changes no variable any more. A variable that has other values
// after the second time may have any value.
func (w *walker) loop(s *scope, body func(*scope)) {
	for i := 0; w.step(); i++ {
		before, once := s.copy(), s.copy()
		body(once)
		s.join(once)
		changed := s.changed(before)
		if len(changed) == 0 {
			return
		}
		if i == 0 {
			continue
		}
		for _, name := range changed {
			v := s.vars[name]
			v.open = true
			s.vars[name] = v
		}
	}
}

// forLoop walks a for loop for all values of its variable.
func (w *walker) forLoop(s *scope, c *syntax.ForClause) {
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		var v values
		if !l.InPos.IsValid() {
			v.open = true
		}
		for _, list := range w.alternatives(s, l.Items) {
			for _, f := range list {
				if f.open {
					v.open = true
				} else {
					v.add(text(f.text))
				}
			}
		}
		w.loop(s, func(s *scope) {
			s.set(l.Name.Value, v)
			w.statements(s, c.Do)
		})
	case *syntax.CStyleLoop:
		w.substitutions(s, l)
		w.loop(s, func(s *scope) { w.statements(s, c.Do) })
	}
}

// declare remembers a function. Its body is walked for each call.
func (w *walker) declare(s *scope, c *syntax.FuncDecl) {
	if c.Name == nil {
		return
	}
	s.functions[c.Name.Value] = c.Body
	w.declared = append(w.declared, c)
}

// function walks the body of a function.
func (w *walker) function(s *scope, body *syntax.Stmt) {
	w.called[body] = true
	w.functions = append(w.functions, body)
	w.statement(s, body)
	w.functions = w.functions[:len(w.functions)-1]
}

// assign sets variables.
func (w *walker) assign(s *scope, all []*syntax.Assign) {
	for _, a := range all {
		switch {
		case a.Name == nil:
			w.substitutions(s, a.Value)
		case a.Naked:
			if _, ok := s.vars[a.Name.Value]; !ok {
				s.set(a.Name.Value, constant(""))
			}
		case a.Array != nil:
			s.set(a.Name.Value, w.array(s, a.Array))
		case a.Index != nil:
			w.literal(s, a.Value)
			s.set(a.Name.Value, values{open: true})
		case a.Append:
			s.set(a.Name.Value, appended(s.get(a.Name.Value), w.literal(s, a.Value)))
		default:
			s.set(a.Name.Value, w.literal(s, a.Value))
		}
	}
}

// declared notes the attributes that a declaration gives to variables and functions.
func declared(s *scope, c *syntax.DeclClause) {
	var b strings.Builder
	for _, a := range c.Args {
		if a.Name == nil && a.Value != nil {
			b.WriteString(a.Value.Lit())
		}
	}
	options := b.String()
	exports := c.Variant.Value == "export" || strings.Contains(options, "x")
	for _, a := range c.Args {
		switch {
		case a.Name == nil:
		case strings.Contains(options, "f"):
			s.exported[a.Name.Value+"()"] = exports
		case strings.ContainsAny(options, "nulci"):
			s.odd[a.Name.Value] = true
			s.forget() // it may be a reference to any other
		case c.Variant.Value == "readonly", c.Variant.Value == "nameref", strings.Contains(options, "r"):
			s.odd[a.Name.Value] = true
		case exports:
			s.exported[a.Name.Value] = true
		}
	}
}

// array returns the value of an array.
func (w *walker) array(s *scope, a *syntax.ArrayExpr) values {
	var words []*syntax.Word
	for _, e := range a.Elems {
		if e.Index != nil || e.Value == nil {
			return values{open: true}
		}
		words = append(words, e.Value)
	}
	var v values
	for _, list := range w.alternatives(s, words) {
		if isOpen(list) {
			v.open = true
		} else {
			v.add(expand.Variable{Set: true, Kind: expand.Indexed, List: texts(list)})
		}
	}
	return v
}

// appended returns the values of += for texts.
func appended(to, more values) values {
	v := values{open: to.open || more.open || len(to.known)*len(more.known) > maxValues}
	if len(to.known) == 0 {
		to = constant("")
	}
	for _, a := range to.known {
		for _, b := range more.known {
			if a.Kind != expand.String || b.Kind != expand.String || len(a.Str)+len(b.Str) > maxField {
				return values{open: true}
			}
			v.add(text(a.Str + b.Str))
		}
	}
	return v
}
