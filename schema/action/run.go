package action

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An invocation is one command with expanded words.
type invocation struct {
	words     []field
	env       []string
	redirects []Redirect
	in        input
	pipeTo    string
	// own is the number of words that are of the command itself, if others are of a command that it
	// runs; 0: all.
	own int
}

// call walks a simple command, for all values of its words.
func (w *walker) call(s *scope, c *syntax.CallExpr, redirects []*syntax.Redirect, in input, pipeTo string) {
	files := w.redirects(s, redirects)
	if len(c.Args) == 0 {
		w.assign(s, c.Assigns)
		for _, r := range files {
			w.redirected(s, r)
		}
		return
	}
	env, inner := w.environment(s, c.Assigns)
	before := inner.copy()
	for i, words := range w.alternatives(s, c.Args) {
		one := invocation{words: words, env: env, redirects: files, in: in, pipeTo: pipeTo}
		if i == 0 {
			w.invoke(inner, one)
			continue
		}
		other := before.copy()
		w.invoke(other, one)
		inner.join(other)
	}
	if inner != s { // cd and such change the scope in spite of assignments before them
		for _, a := range c.Assigns {
			if a.Name != nil {
				inner.vars[a.Name.Value] = s.vars[a.Name.Value]
			}
		}
		inner.exported = s.exported
		s.become(inner)
	}
}

// environment returns the assignments before a command, and the scope that it runs in.
func (w *walker) environment(s *scope, all []*syntax.Assign) (env []string, inner *scope) {
	if len(all) == 0 {
		return nil, s
	}
	inner = s.copy()
	w.assign(inner, all)
	for _, a := range all {
		if a.Name == nil {
			continue
		}
		inner.exported[a.Name.Value] = true
		value := ""
		if v := inner.get(a.Name.Value); len(v.known) == 1 && !v.open {
			value = v.known[0].String()
		} else if a.Value != nil {
			value = w.written(s, &world{scope: s}, a.Value.Parts)
		}
		env = append(env, a.Name.Value+"="+value)
	}
	return env, inner
}

// invoke adds a command, or what it runs if it is a wrapper, a shell or a function.
func (w *walker) invoke(s *scope, c invocation) {
	if len(c.words) == 0 || !w.enter() {
		return
	}
	defer w.leave()
	first := c.words[0]
	if first.open {
		w.add(s, c, first.text, true)
		return
	}
	name := path.Base(first.text)
	if body := s.functions[first.text]; body != nil && !slices.Contains(w.functions, body) {
		w.callFunction(s, body, c)
		return
	}
	if w.special(s, c, name) {
		return
	}
	if p, ok := prefixOf(name); ok {
		w.unwrap(s, c, name, p)
		return
	}
	language := interpreterOf(name)
	w.add(s, c, name, language != "" && w.code(c, language))
}

// callFunction walks the body of a function with its arguments.
func (w *walker) callFunction(s *scope, body *syntax.Stmt, c invocation) {
	for _, r := range c.redirects {
		w.redirected(s, r)
	}
	args, in := s.args, s.in
	s.args = append([]field{}, c.words[1:]...)
	if c.in.given {
		s.in = c.in
	}
	w.function(s, body)
	s.args, s.in = args, in
}

// add adds a command with its paths and hosts.
func (w *walker) add(s *scope, c invocation, name string, dynamic bool) {
	cmd := Command{
		Name: name, Env: c.env, Redirects: c.redirects, PipeTo: c.pipeTo,
		Wrappers: slices.Clone(s.wrappers), Dynamic: dynamic, Remote: s.remote,
	}
	if len(c.words) > 1 {
		cmd.Args = texts(c.words[1:])
		cmd.Flags = flagsOf(cmd.Args)
	}
	if c.in.given && !c.in.open {
		cmd.Heredoc = c.in.text
	}
	same := func(o Command) bool { return equalCommands(&o, &cmd) }
	switch {
	case slices.ContainsFunc(w.out.Commands, same):
		return
	case len(w.out.Commands) == maxCommands:
		w.out.unparsed("it runs too many commands")
		return
	}
	w.out.Commands = append(w.out.Commands, cmd)
	for _, r := range c.redirects {
		w.redirected(s, r)
	}
	if !dynamic && strings.Contains(c.words[0].text, "/") {
		w.path(s, c.words[0].text, ExecuteAccess)
	}
	if !dynamic {
		own := c.words[1:]
		if c.own > 0 {
			own = c.words[1:min(c.own, len(c.words))]
		}
		w.paths(s, name, own)
		w.hosts(name, own)
	}
}

// equalCommands reports whether two commands have the same facts.
func equalCommands(a, b *Command) bool {
	return a.Name == b.Name && a.PipeTo == b.PipeTo && a.Heredoc == b.Heredoc && a.Dynamic == b.Dynamic && a.Remote == b.Remote &&
		slices.Equal(a.Args, b.Args) && slices.Equal(a.Wrappers, b.Wrappers) && slices.Equal(a.Env, b.Env) && slices.Equal(a.Redirects, b.Redirects)
}

// flagsOf returns the names of the options among arguments.
func flagsOf(args []string) []string {
	var flags []string
	add := func(name string) {
		if name != "" && !slices.Contains(flags, name) {
			flags = append(flags, name)
		}
	}
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if long, ok := strings.CutPrefix(arg, "--"); ok {
			name, _, _ := strings.Cut(long, "=")
			add(name)
		} else if len(arg) > 1 && arg[0] == '-' {
			add(arg[1:])
			for _, letter := range arg[1:] {
				if letter == '=' {
					break
				}
				add(string(letter))
			}
		}
	}
	return flags
}

// within walks what a wrapper runs.
func (w *walker) within(s *scope, wrapper string, run func(*scope)) {
	before := s.wrappers
	s.wrappers = append(slices.Clip(before), wrapper)
	run(s)
	s.wrappers = before
}

// unwrap walks the command behind a prefix such as sudo.
func (w *walker) unwrap(s *scope, c invocation, name string, p prefix) {
	words := c.words[1:]
	for len(words) > 0 {
		arg := words[0].text
		switch {
		case words[0].open && p.positional == 0:
			w.add(s, c, name, true)
			return
		case arg == "--":
			words = words[1:]
			w.behind(s, c, name, p, words)
			return
		case p.assigns && isAssignment(arg):
			c.env = append(slices.Clip(c.env), arg)
			words = words[1:]
		case len(arg) > 1 && arg[0] == '-':
			words = words[min(p.width(arg), len(words)):]
		default:
			w.behind(s, c, name, p, words)
			return
		}
	}
	w.add(s, c, name, false)
}

// behind walks the command after the options of a prefix.
func (w *walker) behind(s *scope, c invocation, name string, p prefix, words []field) {
	if len(words) <= p.positional {
		w.add(s, c, name, false)
		return
	}
	c.words = words[p.positional:]
	if p.remote {
		s = s.elsewhere()
	}
	w.within(s, name, func(s *scope) { w.invoke(s, c) })
}

// isAssignment reports whether an argument has the form NAME=value.
func isAssignment(arg string) bool {
	name, _, ok := strings.Cut(arg, "=")
	return ok && syntax.ValidName(name)
}

// evaluate walks the script in words, which are joined with spaces as eval does.
func (w *walker) evaluate(s *scope, c invocation, wrapper string, words []field) {
	if isOpen(words) || len(words) == 0 {
		w.add(s, c, path.Base(c.words[0].text), len(words) > 0)
		return
	}
	for _, r := range c.redirects {
		w.redirected(s, r)
	}
	script := strings.Join(texts(words), " ")
	in := s.in
	if c.in.given {
		s.in = c.in
	}
	w.within(s, wrapper, func(s *scope) { w.parse(s, script) })
	s.in = in
}
