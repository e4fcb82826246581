package action

import (
	"maps"
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A scope is what is known at one point of a script.
type scope struct {
	vars      map[string]values
	functions map[string]*syntax.Stmt
	// exported are the variables and functions that programs inherit.
	exported map[string]bool
	// odd are variables that an assignment may set to something else, or not at all: references,
	// readonly variables, and those that change letters.
	odd map[string]bool
	// args are the positional parameters; nil: they are unknown.
	args []field
	// wrappers run the commands of the scope.
	wrappers []string
	remote   bool
	// in is the input of commands without input of their own.
	in input
}

// copy returns a scope whose changes do not affect s, as for a subshell.
func (s *scope) copy() *scope {
	c := *s
	c.vars, c.functions, c.exported = maps.Clone(s.vars), maps.Clone(s.functions), maps.Clone(s.exported)
	c.odd = maps.Clone(s.odd)
	return &c
}

// child returns the scope of a shell that a command starts. It inherits what is exported. Another
// variable may be exported because the environment has it; otherwise it is empty there.
func (s *scope) child() *scope {
	c := s.copy()
	c.args = []field{}
	delete(c.vars, "IFS")
	for name, v := range c.vars {
		if !s.exported[name] && name != "HOME" && name != "PWD" {
			c.vars[name] = v.join(constant(""))
		}
	}
	for name := range s.functions {
		if !s.exported[name+"()"] {
			delete(c.functions, name)
		}
	}
	return c
}

// elsewhere returns the scope of a shell on another machine or in a container, which inherits nothing.
func (s *scope) elsewhere() *scope {
	c := *s
	c.vars, c.functions, c.args, c.remote = map[string]values{"HOME": constant("~"), "PWD": {open: true}}, make(map[string]*syntax.Stmt), []field{}, true
	return &c
}

// become sets the variables of s to those of o.
func (s *scope) become(o *scope) {
	s.vars, s.functions, s.exported = o.vars, o.functions, o.exported
	s.odd, s.args = o.odd, o.args
}

// join sets each variable to what it may be in s or in o.
func (s *scope) join(o *scope) {
	for name, v := range o.vars {
		if mine, ok := s.vars[name]; ok {
			s.vars[name] = mine.join(v)
		} else {
			v.open = true // the environment may have it
			s.vars[name] = v
		}
	}
	for name, v := range s.vars {
		if _, ok := o.vars[name]; !ok {
			v.open = true
			s.vars[name] = v
		}
	}
	for name, body := range o.functions {
		if s.functions[name] == nil {
			s.functions[name] = body
		}
	}
	maps.Copy(s.exported, o.exported)
	maps.Copy(s.odd, o.odd)
	if (s.args == nil) != (o.args == nil) || !slices.Equal(s.args, o.args) {
		s.args = nil
	}
}

// changed returns the variables that have other values than in an earlier scope.
func (s *scope) changed(before *scope) (names []string) {
	for name, v := range s.vars {
		if old, ok := before.vars[name]; !ok || old.open != v.open || len(old.known) != len(v.known) && !v.open {
			names = append(names, name)
		}
	}
	return names
}

// set sets a variable.
func (s *scope) set(name string, v values) {
	if s.odd[name] {
		v.open = true
	}
	s.vars[name] = v
}

// forget makes all variables and positional parameters unknown.
func (s *scope) forget() {
	for name, v := range s.vars {
		v.open = true
		s.vars[name] = v
	}
	s.args = nil
}

// get returns what a variable may be. The zero values are a variable that the script does not set.
func (s *scope) get(name string) values {
	switch name {
	case "@", "*", "#", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
		return s.positional(name)
	}
	return s.vars[name]
}

// positional returns a positional parameter.
func (s *scope) positional(name string) values {
	if s.args == nil || name == "0" || isOpen(s.args) && (name == "@" || name == "*" || name == "#") {
		return values{open: true}
	}
	switch name {
	case "@", "*":
		return values{known: []expand.Variable{{Set: true, Kind: expand.Indexed, List: texts(s.args)}}}
	case "#":
		return constant(strconv.Itoa(len(s.args)))
	}
	switch n, _ := strconv.Atoi(name); {
	case n > len(s.args):
		return constant("")
	case s.args[n-1].open:
		return values{open: true}
	default:
		return constant(s.args[n-1].text)
	}
}
