package action

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// The limits of values. Beyond them, a value counts as known only at run time.
const (
	maxValues       = 64 // of one variable
	maxAlternatives = 32 // of one command
	maxField        = 64 << 10
)

// A field is one word of a command after its expansion.
type field struct {
	text string
	open bool // some part is known only at run time, and text has the script's own text for it
}

// fields returns a field for each known text.
func fields(texts []string) []field {
	all := make([]field, len(texts))
	for i, text := range texts {
		all[i].text = text
	}
	return all
}

// texts returns the texts of fields.
func texts(all []field) []string {
	list := make([]string, len(all))
	for i, f := range all {
		list[i] = f.text
	}
	return list
}

// isOpen reports whether some field is known only at run time.
func isOpen(all []field) bool { return slices.ContainsFunc(all, func(f field) bool { return f.open }) }

// values are what a variable may be.
type values struct {
	known []expand.Variable
	open  bool // it may also be something that is known only at run time
}

func text(s string) expand.Variable { return expand.Variable{Set: true, Kind: expand.String, Str: s} }

func constant(texts ...string) values {
	var v values
	for _, s := range texts {
		v.add(text(s))
	}
	return v
}

// add adds a value. Too many values are open.
func (v *values) add(value expand.Variable) {
	same := func(o expand.Variable) bool {
		return o.Kind == value.Kind && o.Str == value.Str && slices.Equal(o.List, value.List) && len(o.Map)+len(value.Map) == 0
	}
	switch {
	case slices.ContainsFunc(v.known, same):
	case len(v.known) == maxValues:
		v.open = true
	default:
		v.known = append(v.known, value)
	}
}

// join returns the values of both.
func (v values) join(o values) values {
	both := values{slices.Clip(v.known), v.open || o.open}
	for _, value := range o.known {
		both.add(value)
	}
	return both
}

// A world is the environment of one expansion: one value for each variable.
type world struct {
	scope *scope
	// named are the variables that the words name. Expansions ask for others, too, such as IFS.
	named []string
	// chosen are the values of the variables with several. nil: that one is known only at run time.
	chosen map[string]*expand.Variable
	// asked reports that the expansion needed something that is known only at run time.
	asked bool
}

// Get returns a variable. An environment variable that the script does not set is unset.
func (w *world) Get(name string) expand.Variable {
	if user, ok := strings.CutPrefix(name, "HOME "); ok {
		return text("~" + user)
	}
	if name == "PWD" && !slices.Contains(w.named, name) {
		return expand.Variable{} // patterns are not expanded
	}
	v, known := w.value(name)
	w.asked = w.asked || !known
	return v
}

// value returns the value of a variable, and whether it is known. A variable that the script does not
// set is unset.
func (w *world) value(name string) (v expand.Variable, known bool) {
	if v, ok := w.chosen[name]; ok {
		if v == nil {
			return expand.Variable{}, false
		}
		return *v, true
	}
	switch all := w.scope.get(name); {
	case all.open || len(all.known) > 1:
		return expand.Variable{}, false
	case len(all.known) == 1:
		return all.known[0], true
	}
	return expand.Variable{}, true
}

// Each has nothing to do: expansions start no programs.
func (*world) Each(func(string, expand.Variable) bool) {}

// worlds returns a world for each combination of values of the named variables. If there are too many,
// these variables are known only at run time.
func (s *scope) worlds(names []string) []*world {
	all := []*world{{scope: s, named: names}}
	for _, name := range names {
		v := s.get(name)
		if len(v.known) == 0 || len(v.known) == 1 && !v.open {
			continue
		}
		var choices []*expand.Variable
		for i := range v.known {
			choices = append(choices, &v.known[i])
		}
		if v.open {
			choices = append(choices, nil)
		}
		if len(all)*len(choices) > maxAlternatives {
			return []*world{{scope: s, named: names}}
		}
		var next []*world
		for _, w := range all {
			for _, c := range choices {
				chosen := maps.Clone(w.chosen)
				if chosen == nil {
					chosen = make(map[string]*expand.Variable)
				}
				chosen[name] = c
				next = append(next, &world{scope: s, named: names, chosen: chosen})
			}
		}
		all = next
	}
	return all
}

// maxBraces is the number of braces in a word, each of which multiplies its expansions.
const maxBraces = 10

// fits reports whether the expansion of a node is within the limits.
func (w *world) fits(node syntax.Node) bool {
	braces := 0
	syntax.Walk(node, func(x syntax.Node) bool {
		if l, ok := x.(*syntax.Lit); ok {
			braces += strings.Count(l.Value, "{")
		}
		return true
	})
	return braces <= maxBraces && w.weight(node) <= 4*maxField
}

// weight returns an upper bound on the length of the variables in an expansion.
func (w *world) weight(node syntax.Node) (n int) {
	syntax.Walk(node, func(x syntax.Node) bool {
		p, ok := x.(*syntax.ParamExp)
		if !ok || p.Param == nil {
			return true
		}
		v, _ := w.value(p.Param.Value)
		size := len(v.Str) + 1
		for _, item := range v.List {
			size += len(item) + 1
		}
		if p.Repl != nil && p.Repl.With != nil {
			size *= 1 + len(p.Repl.With.Lit()) + w.weight(p.Repl.With)
		}
		n = min(n+size, 1<<30)
		return true
	})
	return n
}

// errOpen means that an expansion is known only at run time.
var errOpen = errors.New("known only at run time")

// alternatives expands words for all values that their variables may have.
func (w *walker) alternatives(s *scope, words []*syntax.Word) [][]field {
	for _, word := range words {
		w.substitutions(s, word)
	}
	var all [][]field
	for _, world := range s.worlds(names(words)) {
		if !w.step() {
			break
		}
		var list []field
		for _, word := range words {
			list = append(list, w.expand(s, world, word)...)
		}
		if !slices.ContainsFunc(all, func(o []field) bool { return slices.Equal(o, list) }) {
			all = append(all, list)
		}
	}
	return all
}

// expand returns the fields of one word.
func (w *walker) expand(s *scope, world *world, word *syntax.Word) []field {
	written := func() []field { return []field{{w.written(s, world, word.Parts), true}} }
	if !world.fits(word) {
		return written()
	}
	world.asked = false
	var list []string
	size := 0
	for text, err := range expand.FieldsSeq(w.expansion(s, world), word) {
		if size += len(text); err != nil || world.asked || size > maxField {
			return written()
		}
		list = append(list, text)
	}
	if world.asked {
		return written()
	}
	return fields(list)
}

// expansion returns the configuration of an expansion that reads no files and starts no programs.
func (w *walker) expansion(s *scope, world *world) *expand.Config {
	return &expand.Config{
		Env: world, NoUnset: true, CmdSubst: w.output(s),
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "", errOpen },
	}
}

// literal expands a word without splitting it, as in an assignment, for all values.
func (w *walker) literal(s *scope, word *syntax.Word) values {
	if word == nil {
		return constant("")
	}
	w.substitutions(s, word)
	word = withoutEscapes(word)
	var v values
	for _, world := range s.worlds(names([]*syntax.Word{word})) {
		if !w.step() {
			return values{open: true}
		}
		if !world.fits(word) {
			v.open = true
			continue
		}
		got, err := expand.Literal(w.expansion(s, world), word)
		if err != nil || world.asked || len(got) > maxField {
			v.open = true
			continue
		}
		v.add(text(got))
	}
	return v
}

// withoutEscapes returns a word whose escaped literals are quoted, because expand.Literal would keep
// the backslashes.
func withoutEscapes(word *syntax.Word) *syntax.Word {
	plain := &syntax.Word{Parts: slices.Clone(word.Parts)}
	for i, part := range plain.Parts {
		if l, ok := part.(*syntax.Lit); ok && strings.Contains(l.Value, `\`) {
			plain.Parts[i] = &syntax.SglQuoted{Value: unescaped(l.Value)}
		}
	}
	return plain
}

// document returns the text of a here-document, and whether all of it is known.
func (w *walker) document(s *scope, word *syntax.Word) field {
	w.substitutions(s, word)
	worlds := s.worlds(names([]*syntax.Word{word}))
	world := worlds[0]
	if len(worlds) > 1 || !world.fits(word) {
		return field{w.written(s, world, word.Parts), true}
	}
	got, err := expand.Document(w.expansion(s, world), word)
	if err != nil || world.asked || len(got) > maxField {
		return field{w.written(s, world, word.Parts), true}
	}
	return field{text: got}
}

// names returns the names of the variables in words.
func names(words []*syntax.Word) []string {
	var all []string
	for _, word := range words {
		syntax.Walk(word, func(n syntax.Node) bool {
			if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil && !slices.Contains(all, p.Param.Value) {
				all = append(all, p.Param.Value)
			}
			return true
		})
	}
	return all
}

// substitutions walks the commands inside a word.
func (w *walker) substitutions(s *scope, node syntax.Node) {
	if node == nil {
		return
	}
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.statements(s.copy(), n.Stmts)
			return false
		case *syntax.ProcSubst:
			w.statements(s.copy(), n.Stmts)
			return false
		case *syntax.ParamExp:
			w.assignedDefault(s, n)
		case *syntax.BinaryArithm:
			if name, ok := n.X.(*syntax.Word); ok && n.Op >= syntax.Assgn {
				s.set(name.Lit(), values{open: true})
			}
		}
		return true
	})
}

// assignedDefault sets the variable of ${name:=value}.
func (w *walker) assignedDefault(s *scope, p *syntax.ParamExp) {
	if p.Exp != nil && p.Param != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		s.set(p.Param.Value, s.get(p.Param.Value).join(w.literal(s, p.Exp.Word)))
	}
}
