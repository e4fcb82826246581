package action

import (
	"slices"
	"strings"
)

// xargs walks the command that xargs runs, with the arguments from its input if they are known.
func (w *walker) xargs(s *scope, c invocation, name string) {
	options := prefix{short: "adEILnPsjSN", long: []string{"arg-file", "delimiter", "max-args", "max-procs", "max-lines", "max-chars", "jobs", "process-slot-var", "colsep", "joblog"}}
	words, replace := c.words[1:], ""
	if name == "parallel" {
		replace = "{}"
	}
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' && !words[0].open {
		option := words[0].text
		n := min(options.width(option), len(words))
		switch {
		case option == "-I" && n == 2:
			replace = words[1].text
		case strings.HasPrefix(option, "-I"):
			replace = option[2:]
		case option == "-i" || option == "--replace":
			replace = "{}"
		case strings.HasPrefix(option, "--replace="):
			replace = option[len("--replace="):]
		}
		words = words[n:]
	}
	if i := slices.IndexFunc(words, func(f field) bool { return strings.HasPrefix(f.text, ":::") }); i >= 0 && name == "parallel" {
		c.in = input{given: true, text: strings.Join(texts(words[i+1:]), "\n"), open: isOpen(words[i+1:])}
		words = words[:i]
	}
	outer := c
	outer.in, outer.own = input{}, len(c.words)-len(words)
	w.add(s, outer, name, false)
	if len(words) == 0 && name == "xargs" {
		return
	}
	inner := invocation{env: c.env, redirects: c.redirects, pipeTo: c.pipeTo}
	for _, words := range filled(words, replace, c.in) {
		inner.words = words
		w.within(s.child(), name, func(s *scope) { w.invoke(s, inner) })
	}
}

// filled returns the commands that xargs runs for its input.
func filled(words []field, replace string, in input) [][]field {
	if !in.given || in.open {
		if replace != "" {
			return [][]field{replaced(words, replace, field{replace, true})}
		}
		return [][]field{words}
	}
	items := strings.Fields(strings.ReplaceAll(in.text, "\x00", " "))
	if replace == "" {
		return [][]field{append(slices.Clone(words), fields(items)...)}
	}
	var all [][]field
	for line := range strings.SplitSeq(strings.TrimSpace(in.text), "\n") {
		if len(all) == maxAlternatives {
			return append(all, replaced(words, replace, field{replace, true}))
		}
		list := replaced(words, replace, field{text: line})
		if slices.EqualFunc(list, words, func(a, b field) bool { return a == b }) {
			list = append(list, field{text: line}) // parallel appends it
		}
		all = append(all, list)
	}
	return all
}

// replaced returns words with each mark replaced.
func replaced(words []field, mark string, by field) []field {
	list := slices.Clone(words)
	for i, f := range list {
		if strings.Contains(f.text, mark) {
			list[i] = field{strings.ReplaceAll(f.text, mark, by.text), f.open || by.open}
		}
	}
	return list
}

// find walks the commands that find runs, for the folders that it searches.
func (w *walker) find(s *scope, c invocation, name string) {
	w.add(s, c, name, false)
	words := c.words[1:]
	runs := []string{"-exec", "-execdir", "-ok", "-okdir"}
	if name != "find" {
		runs = []string{"-x", "-X", "--exec", "--exec-batch"}
	}
	folders := found(words)
	for i := 0; i < len(words); i++ {
		if !slices.Contains(runs, words[i].text) {
			continue
		}
		end := i + 1
		for end < len(words) && words[end].text != ";" && words[end].text != "+" {
			end++
		}
		command := words[i+1 : end]
		for _, folder := range folders {
			w.within(s.child(), name+" "+words[i].text, func(s *scope) { w.invoke(s, invocation{words: replaced(command, "{}", folder)}) })
		}
		i = end
	}
}

// searched returns the folders that find searches.
func searched(words []field) []field {
	var folders []field
	for _, f := range words {
		if strings.HasPrefix(f.text, "-") || f.text == "(" || f.text == "!" {
			if len(folders) > 0 || !slices.Contains([]string{"-H", "-L", "-P"}, f.text) {
				break
			}
			continue
		}
		folders = append(folders, f)
	}
	if len(folders) == 0 {
		folders = []field{{text: "."}}
	}
	return folders[:min(len(folders), maxAlternatives)]
}

// found returns what find finds: the folders, or the names in them if it looks for names.
func found(words []field) []field {
	folders := searched(words)
	for i, f := range words {
		if (f.text != "-name" && f.text != "-iname") || i+1 >= len(words) {
			continue
		}
		if slices.Contains(texts(words), "-o") || slices.Contains(texts(words), "-or") || slices.Contains(texts(words), ",") || i > 0 && (words[i-1].text == "!" || words[i-1].text == "-not") {
			return folders
		}
		for j := range folders {
			folders[j] = field{strings.TrimSuffix(folders[j].text, "/") + "/**/" + words[i+1].text, folders[j].open || words[i+1].open}
		}
		return folders
	}
	return folders
}

// ssh walks the command on another host.
func (w *walker) ssh(s *scope, c invocation) {
	options := prefix{short: "BbcDEeFIiJLlmOopQRSWw"}
	words := c.words[1:]
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' && !words[0].open {
		n := min(options.width(words[0].text), len(words))
		value := words[0].text[2:]
		if n == 2 {
			value = words[1].text
		}
		if words[0].text[1] == 'o' {
			w.local(s, value)
		}
		words = words[n:]
	}
	c.own = len(c.words) - max(len(words)-1, 0)
	w.add(s, c, "ssh", false)
	remote := s.elsewhere()
	switch {
	case len(words) > 1:
		w.evaluate(remote, invocation{words: c.words, in: c.in}, "ssh", words[1:])
	case c.in.given && !c.in.open:
		w.within(remote, "ssh", func(s *scope) { w.parse(s, c.in.text) })
	}
}

// local walks the command of an option of ssh that runs here.
func (w *walker) local(s *scope, option string) {
	name, script, ok := strings.Cut(option, "=")
	if !ok {
		name, script, _ = strings.Cut(option, " ")
	}
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "proxycommand", "localcommand", "knownhostscommand":
		w.within(s.child(), "ssh -o", func(s *scope) { w.parse(s, script) })
	}
}

// container walks the command in a container.
func (w *walker) container(s *scope, c invocation, name string) {
	verb, words := containerCommand(c.words[1:])
	c.own = len(c.words) - len(words)
	w.add(s, c, name, false)
	if len(words) == 0 {
		return
	}
	w.within(s.elsewhere(), name+" "+verb, func(s *scope) { w.invoke(s, invocation{words: words, in: c.in}) })
}

// containerCommand returns the command that docker and its relatives run, and the verb; nil: there is
// none.
func containerCommand(words []field) (verb string, command []field) {
	options := containerOptions()
	skip := func() {
		for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' && words[0].text != "--" {
			words = words[min(options.width(words[0].text), len(words)):]
		}
	}
	if skip(); len(words) > 0 && words[0].text == "compose" {
		words = words[1:]
		skip()
	}
	if len(words) == 0 || words[0].text != "exec" && words[0].text != "run" {
		return "", nil
	}
	verb, words = words[0].text, words[1:]
	if skip(); len(words) < 2 {
		return "", nil
	}
	words = words[1:] // the container, the image, or the pod
	if skip(); len(words) > 0 && words[0].text == "--" {
		words = words[1:]
	}
	return verb, words
}

// git walks git without its global options, and the commands that it runs.
func (w *walker) git(s *scope, c invocation) {
	options := prefix{short: "Cc", long: []string{"git-dir", "work-tree", "namespace", "super-prefix", "config-env", "exec-path"}}
	words := c.words[1:]
	inner := s
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' && !words[0].open {
		n := min(options.width(words[0].text), len(words))
		if n == 2 {
			switch words[0].text {
			case "-C":
				inner = inner.copy()
				inner.wrappers = append(slices.Clip(s.wrappers), "git -C")
				w.moveTo(inner, words[1])
			case "-c":
				w.gitSetting(s, words[1].text)
			}
		}
		words = words[n:]
	}
	c.words = append([]field{c.words[0]}, words...)
	w.add(inner, c, "git", false)
	w.gitRuns(inner, texts(words))
}

// moveTo sets the working directory to a folder.
func (w *walker) moveTo(s *scope, folder field) {
	if folder.open {
		s.set("PWD", values{open: true})
		return
	}
	v := values{open: s.get("PWD").open && !absolute(folder.text)}
	known := s.get("PWD").known
	if absolute(folder.text) {
		known = constant("/").known
	}
	for _, now := range known {
		v.add(text(joined(now.Str, folder.text)))
	}
	s.set("PWD", v)
}

// gitSetting walks the command in a setting.
func (w *walker) gitSetting(s *scope, setting string) {
	name, value, _ := strings.Cut(setting, "=")
	name = strings.ToLower(name)
	script, bang := strings.CutPrefix(value, "!")
	if bang || slices.Contains([]string{"core.sshcommand", "core.pager", "core.editor", "core.fsmonitor", "sequence.editor", "diff.external", "gpg.program"}, name) {
		w.within(s.child(), "git -c", func(s *scope) { w.parse(s, script) })
	}
}

// gitRuns walks the commands that subcommands run.
func (w *walker) gitRuns(s *scope, args []string) {
	run := func(wrapper, script string) {
		w.within(s.child(), wrapper, func(s *scope) { w.parse(s, script) })
	}
	switch {
	case len(args) > 2 && args[0] == "submodule" && slices.Contains(args, "foreach"):
		rest := slices.DeleteFunc(args[slices.Index(args, "foreach")+1:], func(a string) bool { return strings.HasPrefix(a, "--") })
		run("git submodule foreach", strings.Join(rest, " "))
	case len(args) > 2 && args[0] == "bisect" && args[1] == "run":
		run("git bisect run", strings.Join(args[2:], " "))
	case len(args) > 1 && args[0] == "rebase":
		for i, arg := range args {
			if script, ok := strings.CutPrefix(arg, "--exec="); ok {
				run("git rebase --exec", script)
			} else if (arg == "-x" || arg == "--exec") && i+1 < len(args) {
				run("git rebase --exec", args[i+1])
			}
		}
	}
}

// tar walks the programs that tar runs.
func (w *walker) tar(s *scope, c invocation) {
	w.add(s, c, "tar", false)
	for i, f := range c.words[1:] {
		script, ok := "", false
		for _, option := range []string{"--checkpoint-action=exec=", "--to-command=", "--use-compress-program=", "--rsh-command="} {
			if script, ok = strings.CutPrefix(f.text, option); ok {
				break
			}
		}
		if !ok && f.text == "-I" && i+2 < len(c.words) {
			script, ok = c.words[i+2].text, true
		}
		if ok {
			w.within(s.child(), "tar", func(s *scope) { w.parse(s, script) })
		}
	}
}
