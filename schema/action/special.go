package action

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// special handles programs that run commands, or change the scope, in a way of their own. It reports
// whether the program is one of them.
func (w *walker) special(s *scope, c invocation, name string) bool {
	switch name {
	case "eval":
		w.evaluate(s, c, "eval", c.words[1:])
	case "cd", "pushd", "chdir":
		w.changeFolder(s, c, name)
	case "set", "shift", "source", ".":
		w.positional(s, c, name)
	case "read", "mapfile", "readarray", "getopts", "printf", "unset", "wait":
		w.assigning(s, c, name)
	case "alias", "trap":
		w.deferred(s, c, name)
	case "env":
		return w.splitString(s, c)
	case "command":
		return w.lookup(s, c)
	case "xargs", "parallel":
		w.xargs(s, c, name)
	case "find", "fd", "fdfind":
		w.find(s, c, name)
	case "ssh":
		w.ssh(s, c)
	case "docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose", "crictl", "lxc":
		w.container(s, c, name)
	case "git":
		w.git(s, c)
	case "su", "script", "flock", "watch", "at", "batch":
		w.scriptOption(s, c, name)
	case "tar":
		w.tar(s, c)
	case "pwsh", "powershell", "powershell.exe", "cmd", "cmd.exe", "fish", "nu", "xonsh":
		w.add(s, c, name, false)
		w.out.unparsed("scripts of " + name + " are not parsed")
	default:
		if !isShell(name) {
			return false
		}
		w.shell(s, c, name)
	}
	return true
}

// shell walks the script of a shell: the value of -c, or its input.
func (w *walker) shell(s *scope, c invocation, name string) {
	words := c.words[1:]
	for i := 0; i < len(words); i++ {
		arg := words[i].text
		switch {
		case words[i].open:
			w.add(s, c, name, true)
			return
		case arg == "-o", arg == "+o", arg == "-O", arg == "+O", arg == "--rcfile", arg == "--init-file":
			i++
		case arg == "-s" || arg == "-" || arg == "--" && i+1 == len(words):
			w.readScript(s, c, name)
			return
		case len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.Contains(arg, "c"):
			w.shellScript(s, c, name, words[i+1:])
			return
		case len(arg) > 1 && (arg[0] == '-' || arg[0] == '+'):
		default:
			w.add(s, c, name, false)
			w.path(s, arg, ExecuteAccess)
			return
		}
	}
	w.readScript(s, c, name)
}

// shellScript walks the value of -c, after which come the positional parameters.
func (w *walker) shellScript(s *scope, c invocation, name string, words []field) {
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' && !words[0].open {
		words = words[1:] // further options
	}
	if len(words) == 0 {
		w.add(s, c, name, true) // such as xargs sh -c
		return
	}
	inner := s.child()
	if len(words) > 1 {
		inner.args = append(inner.args, words[2:]...)
	}
	w.evaluate(inner, c, name+" -c", words[:1])
}

// readScript walks the script that a shell reads as its input.
func (w *walker) readScript(s *scope, c invocation, name string) {
	if !c.in.given || c.in.open {
		w.add(s, c, name, c.in.given)
		return
	}
	script, inner := c.in.text, s.child()
	c.in, inner.in = input{}, input{}
	w.evaluate(inner, c, name, []field{{text: script}})
}

// changeFolder sets the working directory.
func (w *walker) changeFolder(s *scope, c invocation, name string) {
	w.add(s, c, name, false)
	words := slices.DeleteFunc(slices.Clone(c.words[1:]), func(f field) bool { return len(f.text) > 1 && f.text[0] == '-' })
	if len(words) == 0 {
		s.set("PWD", constant("~"))
		return
	}
	if words[0].open || words[0].text == "-" || name == "pushd" && strings.HasPrefix(words[0].text, "+") {
		s.set("PWD", values{open: true})
		return
	}
	now := s.get("PWD")
	v := values{open: now.open && !absolute(words[0].text)}
	if absolute(words[0].text) {
		now = constant("/")
	}
	for _, folder := range now.known {
		v.add(text(joined(folder.Str, words[0].text)))
	}
	s.set("PWD", v)
}

// positional sets the positional parameters. A script that is read from a file may set anything.
func (w *walker) positional(s *scope, c invocation, name string) {
	w.add(s, c, name, name != "set" && name != "shift" && len(c.words) > 1 && c.words[1].open)
	words := c.words[1:]
	switch name {
	case "shift":
		n := 1
		if len(words) > 0 {
			n, _ = strconv.Atoi(words[0].text)
		}
		if s.args != nil && !isOpen(words) && n >= 0 && n <= len(s.args) {
			s.args = s.args[n:]
		} else if s.args != nil {
			s.args = nil
		}
	case "set":
		for len(words) > 0 && !words[0].open && len(words[0].text) > 1 && (words[0].text[0] == '-' || words[0].text[0] == '+') {
			text := words[0].text
			words = words[1:]
			if text == "--" {
				s.args = append([]field{}, words...)
				return
			}
			if (text == "-o" || text == "+o") && len(words) > 0 {
				words = words[1:]
			}
		}
		if len(words) > 0 {
			s.args = append([]field{}, words...)
		}
	default:
		s.forget()
	}
}

// assigning sets the variables of builtins that assign them.
func (w *walker) assigning(s *scope, c invocation, name string) {
	w.add(s, c, name, false)
	words := c.words[1:]
	switch name {
	case "printf":
		if len(words) < 2 || words[0].text != "-v" {
			return
		}
		if args := words[2:]; len(args) > 0 && !isOpen(args) && simpleFormat(args[0].text) {
			if out, _, err := expand.Format(&expand.Config{}, args[0].text, texts(args[1:])); err == nil && len(out) <= maxField {
				s.set(words[1].text, constant(out))
				return
			}
		}
		s.set(words[1].text, values{open: true})
		return
	case "unset":
		for _, f := range words {
			s.set(f.text, constant(""))
			delete(s.functions, f.text)
		}
		return
	}
	s.set("REPLY", values{open: true})
	s.set("MAPFILE", values{open: true})
	for _, f := range words {
		if !strings.HasPrefix(f.text, "-") {
			s.set(f.text, values{open: true})
		}
	}
}

// deferred walks what alias and trap run later.
func (w *walker) deferred(s *scope, c invocation, name string) {
	w.add(s, c, name, false)
	for _, f := range c.words[1:] {
		script := f.text
		if name == "alias" {
			if _, script, _ = strings.Cut(f.text, "="); script == "" {
				continue
			}
		} else if strings.HasPrefix(script, "-") {
			continue
		}
		if f.open {
			w.add(s, invocation{words: []field{f}}, name, true)
			return
		}
		w.within(s.copy(), name, func(s *scope) { w.parse(s, script) })
		if name == "trap" {
			return
		}
	}
}

// splitString walks the value of env -S. It reports whether there is one.
func (w *walker) splitString(s *scope, c invocation) bool {
	for i, f := range c.words[1:] {
		rest := c.words[i+2:]
		value, ok := strings.CutPrefix(f.text, "--split-string")
		if ok {
			value = strings.TrimPrefix(value, "=")
		} else if strings.HasPrefix(f.text, "-") {
			if value = strings.TrimLeft(f.text[1:], "i0v"); strings.HasPrefix(value, "S") {
				value, ok = value[1:], true
			}
		}
		switch {
		case ok && value == "":
			w.evaluate(s, c, "env -S", rest)
			return true
		case ok:
			w.evaluate(s, c, "env -S", append([]field{{value, f.open}}, rest...))
			return true
		case !strings.HasPrefix(f.text, "-") && !isAssignment(f.text):
			return false
		}
	}
	return false
}

// lookup handles command -v, which runs nothing. It reports whether the command is one.
func (w *walker) lookup(s *scope, c invocation) bool {
	if len(c.words) > 1 && (c.words[1].text == "-v" || c.words[1].text == "-V") {
		w.add(s, c, "command", false)
		return true
	}
	return false
}

// scriptOption walks the script of -c, the command after the other arguments, or the input of at.
func (w *walker) scriptOption(s *scope, c invocation, name string) {
	words := c.words[1:]
	for i, f := range words {
		if (f.text == "--command" || len(f.text) > 1 && f.text[0] == '-' && f.text[1] != '-' && strings.HasSuffix(f.text, "c")) && i+1 < len(words) {
			w.add(s, c, name, false)
			w.evaluate(s.child(), invocation{words: c.words, in: c.in}, name+" -c", words[i+1:i+2])
			return
		}
		if script, ok := strings.CutPrefix(f.text, "--command="); ok {
			w.add(s, c, name, false)
			w.evaluate(s.child(), invocation{words: c.words}, name+" -c", []field{{script, f.open}})
			return
		}
	}
	switch name {
	case "watch":
		w.unwrapScript(s, c, name, prefix{short: "n", long: []string{"interval"}})
	case "flock":
		w.unwrap(s, c, name, prefix{short: "wE", long: []string{"timeout", "conflict-exit-code"}, positional: 1})
	case "at", "batch":
		w.readScript(s, c, name)
	default:
		w.add(s, c, name, false)
	}
}

// unwrapScript walks the script that is in the arguments after the options.
func (w *walker) unwrapScript(s *scope, c invocation, name string, p prefix) {
	words := c.words[1:]
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' {
		words = words[min(p.width(words[0].text), len(words)):]
	}
	w.evaluate(s.child(), c, name, words)
}

// absolute reports whether a path does not depend on the working directory.
func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || p == "~" || strings.HasPrefix(p, "~")
}

// joined returns a path in a folder.
func joined(folder, p string) string {
	if absolute(p) {
		return cleaned(p)
	}
	return cleaned(folder + "/" + p)
}

// cleaned removes . and .. from a path.
func cleaned(p string) string {
	if !strings.HasPrefix(p, "~") {
		return path.Clean(p)
	}
	home, rest, _ := strings.Cut(p, "/")
	if rest = path.Clean(rest); rest == "." {
		return home
	}
	return home + "/" + rest
}
