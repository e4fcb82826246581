package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
	"github.com/hookfabric/hookfabric/schema"
)

func (t *Runtime) read(o *Options) {
	for _, scope := range install.Scopes(t.Runtime) {
		f, err := install.Find(o.Machine, t.Runtime, scope)
		if err != nil {
			t.problem(err.Error())
		}
		if err != nil || !f.There || slices.ContainsFunc(t.Layers, func(l Layer) bool { return l.Path == f.Path }) {
			continue // in the home folder, the project's file is the user's
		}
		l := Layer{Scope: scope, Path: f.Path, found: f}
		l.Events = append([]string{}, l.at(func(*install.Owned) bool { return true })...)
		t.Layers = append(t.Layers, l)
		t.Connected = t.Connected || len(l.Events) > 0
	}
}

// at returns the events of the hooks that test selects, each once.
func (l *Layer) at(test func(h *install.Owned) bool) (events []string) {
	for i := range l.found.Hooks {
		if h := &l.found.Hooks[i]; test(h) && !slices.Contains(events, h.Event) {
			events = append(events, h.Event)
		}
	}
	return events
}

func list(events []string) string { return strings.Join(events, ", ") }

func (t *Runtime) examine(ctx context.Context, o *Options, f *fabric) {
	if above := install.Above(o.Machine, t.Runtime); above != "" && !t.Connected {
		t.problem(fmt.Sprintf("the hooks in %s have no effect here, because %s reads a project's hooks only in the folder where it starts; start it there, or install with --user", above, t.Label))
		return
	}
	if !t.Connected {
		if len(o.Runtimes) > 0 && len(t.Problems) == 0 {
			t.problem(fmt.Sprintf("%s does not ask the fabric; run 'agentshim install %s' to connect it", t.Label, t.Runtime))
		}
		return
	}
	for _, why := range install.SwitchedOff(o.Machine, t.Runtime) {
		t.problem(why)
	}
	if why := install.Untrusted(o.Machine, t.Runtime); why != "" {
		t.problem(why)
	}
	there := t.layers(o, t.ours())
	t.version()
	if t.Runtime == "codex" {
		t.trusted(ctx, o)
	}
	t.express()
	if there {
		t.try(ctx, o, f)
	}
}

// ours returns the configurations with hooks of agentshim.
func (t *Runtime) ours() (all []Layer) {
	for _, l := range t.Layers {
		if len(l.Events) > 0 {
			all = append(all, l)
		}
	}
	return all
}

// layers checks the hooks as they are configured, and reports whether the programs that they start exist.
func (t *Runtime) layers(o *Options, ours []Layer) (there bool) {
	var paths, missing []string
	well := map[string]bool{} // by event: whether some hook is as an installation writes it
	for _, l := range ours {
		for _, h := range l.found.Hooks {
			well[h.Event] = well[h.Event] || len(h.Differs) == 0
		}
	}
	there = true
	for _, l := range ours {
		paths = append(paths, l.Path)
		there = t.starts(o, &l) && there
		t.asWritten(&l, well)
		t.overHTTP(&l)
		t.waits(&l)
		if missing == nil || len(l.found.Missing) < len(missing) {
			missing = append([]string{}, l.found.Missing...)
		}
	}
	if len(ours) > 1 {
		t.hint(fmt.Sprintf("%d configurations ask about the same calls: %s; with the daemon, the fabric judges each call once, without it once per configuration", len(ours), strings.Join(paths, ", ")))
	}
	if len(missing) > 0 {
		t.problem(fmt.Sprintf("no hook asks the fabric at %s; run 'agentshim install %s' to update the hooks", strings.Join(missing, ", "), t.Runtime))
	}
	return there
}

// starts checks the programs that a configuration's hooks start, and reports whether all of them exist.
func (t *Runtime) starts(o *Options, l *Layer) bool {
	gone := map[string]bool{}
	for _, h := range l.found.Hooks {
		if len(h.Command) > 0 && !runs(o, h.Command[0]) {
			gone[h.Command[0]] = true
		}
	}
	for _, program := range slices.Sorted(maps.Keys(gone)) {
		at := l.at(func(h *install.Owned) bool { return len(h.Command) > 0 && h.Command[0] == program })
		t.problem(fmt.Sprintf("%s: the hooks at %s start %s, which is not a program; install again", l.Path, list(at), program))
	}
	if open := l.at(func(h *install.Owned) bool { return h.Gate && !h.Denies && h.URL == "" }); install.Open(t.Runtime) && len(open) > 0 {
		t.hint(fmt.Sprintf("%s: %s lets calls pass at %s when agentshim is missing; install again, so that the hooks refuse them", l.Path, t.Label, list(open)))
	}
	return len(gone) == 0
}

// asWritten finds hooks that differ from those of an installation.
func (t *Runtime) asWritten(l *Layer, well map[string]bool) {
	var what []string
	at := l.at(func(h *install.Owned) bool {
		differs := len(h.Differs) > 0 && !well[h.Event]
		if differs {
			what = append(what, h.Differs...)
		}
		return differs
	})
	slices.Sort(what)
	if len(at) > 0 {
		t.problem(fmt.Sprintf("%s: the hooks at %s differ from those that 'agentshim install %s' writes (%s), so calls can run without a verdict; install again",
			l.Path, list(at), t.Runtime, list(slices.Compact(what))))
	}
	if len(l.found.Lacks) > 0 {
		t.problem(fmt.Sprintf("%s lacks settings that 'agentshim install %s' writes beside the hooks (%s); install again", l.Path, t.Runtime, list(l.found.Lacks)))
	}
}

// overHTTP checks the hooks with which the runtime asks the daemon itself.
func (t *Runtime) overHTTP(l *Layer) {
	if open := l.at(func(h *install.Owned) bool { return h.URL != "" && h.Gate && !h.Blocks }); len(open) > 0 {
		t.problem(fmt.Sprintf("%s: the hooks at %s ask over HTTP, and %s lets calls pass when no daemon runs or the daemon rejects the token; install again without --http", l.Path, list(open), t.Label))
	}
	if asks := l.at(func(h *install.Owned) bool { return h.URL != "" }); len(asks) > 0 && os.Getenv(install.TokenVariable) == "" {
		t.hint(fmt.Sprintf("%s is not set here; start %s with it, because the daemon answers only with the token", install.TokenVariable, t.Label))
	}
}

func (t *Runtime) waits(l *Layer) {
	short := func(h *install.Owned) string {
		unit := time.Second
		if t.Runtime == "gemini" || t.Runtime == "qwen" && h.Timeout >= 1000 {
			unit = time.Millisecond
		}
		waits := time.Duration(h.Timeout) * unit
		shim, err := time.ParseDuration(h.Flag("--timeout"))
		switch {
		case waits == 0:
		case t.Runtime == "gemini" && h.Timeout < 1000:
			return fmt.Sprintf("Gemini CLI waits only %s, because its timeouts are in milliseconds", waits)
		case err == nil && shim > waits:
			return fmt.Sprintf("agentshim takes up to %s, but %s waits only %s and then lets the call pass", shim, t.Label, waits)
		}
		return ""
	}
	texts := map[string]bool{}
	for i := range l.found.Hooks {
		texts[short(&l.found.Hooks[i])] = true
	}
	delete(texts, "")
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		at := l.at(func(h *install.Owned) bool { return short(h) == text })
		t.problem(fmt.Sprintf("%s: at %s %s; install again", l.Path, list(at), text))
	}
}

// runs reports whether a hook's program is executable in the place where the hook will run.
func runs(o *Options, program string) bool {
	if filepath.IsAbs(program) {
		program = filepath.Join(o.Machine.Root, program)
	}
	_, err := exec.LookPath(program)
	return err == nil || errors.Is(err, exec.ErrDot)
}

// version reports the abilities of the installed version that the hooks do not use.
func (t *Runtime) version() {
	if t.Runtime == "opencode" {
		t.hint("with --pure or OPENCODE_PURE, OpenCode loads no plugins, not even managed ones")
	}
	if t.Runtime != "claude" {
		return
	}
	v, known := probe.ParseVersion(t.Version)
	blocks := slices.ContainsFunc(t.Layers, func(l Layer) bool {
		return slices.ContainsFunc(l.found.Hooks, func(h install.Owned) bool { return h.Event == "PreToolUse" && h.Blocks })
	})
	switch {
	case known && v.Before(install.Blocking()) && blocks:
		t.problem(fmt.Sprintf("Claude Code %s rejects settings with onFailure, which needs %s or later; install again", v, install.Blocking()))
	case known && !v.Before(install.Blocking()) && !blocks:
		t.hint(fmt.Sprintf("Claude Code %s can block calls when a hook itself fails, but these hooks do not tell it to; install again", v))
	}
	t.hint("with --bare or CLAUDE_CODE_SIMPLE, Claude Code runs only managed hooks")
}

func (t *Runtime) trusted(ctx context.Context, o *Options) {
	if t.Program == "" || o.Machine.Root != "" {
		return
	}
	all, err := probe.CodexHooks(ctx, o.Machine.Dir)
	if err != nil {
		t.hint("asking Codex whether it trusts the hooks: " + err.Error())
		return
	}
	runs := map[string]bool{}
	for _, h := range all {
		if install.Ours(h.Command, t.Runtime) {
			runs[h.Event] = runs[h.Event] || h.Runs()
		}
	}
	var skipped []string
	for event, does := range runs {
		if !does {
			skipped = append(skipped, event)
		}
	}
	slices.Sort(skipped)
	switch {
	case len(runs) == 0:
		t.problem("Codex does not read the hooks, because it reads a project's hooks only in folders that it trusts; run codex here, and trust the folder")
	case len(skipped) > 0:
		t.problem(fmt.Sprintf("Codex does not trust the hooks at %s and silently skips them; run 'agentshim install codex --trust'", strings.Join(skipped, ", ")))
	}
}

// express lists the abilities that the runtime lacks at the events with verdicts.
func (t *Runtime) express() {
	d, err := dialect.For(t.Runtime)
	if err != nil {
		t.problem(err.Error())
		return
	}
	for _, at := range []struct {
		event schema.EventType
		needs []dialect.Ability
	}{
		{schema.PreToolUse, []dialect.Ability{dialect.Deny, dialect.Ask, dialect.Approve, dialect.Rewrite, dialect.Inject, dialect.Stop}},
		{schema.PostToolUse, []dialect.Ability{dialect.Inject, dialect.Replace, dialect.Feedback}},
		{schema.UserPromptSubmit, []dialect.Ability{dialect.Deny, dialect.Inject}},
		{schema.BeforeFinalResponse, []dialect.Ability{dialect.Retry}},
	} {
		m, ok := dialect.At(d, at.event)
		for _, a := range at.needs {
			if !ok || m.Can[a] == dialect.Impossible {
				t.Cannot = append(t.Cannot, fmt.Sprintf("%s at %s", a, at.event))
			}
		}
	}
}
