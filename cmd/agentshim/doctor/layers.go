package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/probe"
	"github.com/hookfabric/hookfabric/schema"
)

// read reads all configurations of the runtime that are there.
func (t *Runtime) read(o *Options) {
	for _, scope := range install.Scopes(t.Runtime) {
		f, err := install.Find(o.Machine, t.Runtime, scope)
		if err != nil {
			t.problem(err.Error())
		}
		if err != nil || !f.There || slices.ContainsFunc(t.Layers, func(l Layer) bool { return l.Path == f.Path }) {
			continue // in the home folder, the project's file is the user's
		}
		l := Layer{Scope: scope, Path: f.Path, Events: []string{}, found: f}
		for _, h := range f.Hooks {
			if !slices.Contains(l.Events, h.Event) {
				l.Events = append(l.Events, h.Event)
			}
		}
		t.Layers = append(t.Layers, l)
	}
}

// examine says what is wrong.
func (t *Runtime) examine(ctx context.Context, o *Options, f *fabric) {
	if why := install.SwitchedOff(o.Machine, t.Runtime); why != "" {
		t.problem(why)
	}
	ours := t.ours()
	if len(ours) == 0 {
		t.problem(fmt.Sprintf("%s does not ask the fabric; 'agentshim install %s' has it do so", t.Label, t.Runtime))
		return
	}
	t.layers(o, ours)
	t.version()
	if t.Runtime == "codex" {
		t.trusted(ctx, o)
	}
	t.express()
	t.try(ctx, o, f)
}

// ours are the configurations that have hooks of ours.
func (t *Runtime) ours() (all []Layer) {
	for _, l := range t.Layers {
		if len(l.Events) > 0 {
			all = append(all, l)
		}
	}
	return all
}

// layers looks at the hooks as they are written.
func (t *Runtime) layers(o *Options, ours []Layer) {
	var paths, missing []string
	for _, l := range ours {
		paths = append(paths, l.Path)
		for _, h := range l.found.Hooks {
			t.hook(o, &l, &h)
		}
		if missing == nil || len(l.found.Missing) < len(missing) {
			missing = append([]string{}, l.found.Missing...)
		}
	}
	if len(ours) > 1 {
		t.hint(fmt.Sprintf("%d configurations ask about the same calls: %s; with the daemon each call is judged once, without it as often as it is asked about", len(ours), strings.Join(paths, ", ")))
	}
	if len(missing) > 0 {
		t.problem(fmt.Sprintf("at %s nobody is asked; 'agentshim install %s' brings the hooks up to date", strings.Join(missing, ", "), t.Runtime))
	}
}

// hook looks at one hook as it is written.
func (t *Runtime) hook(o *Options, l *Layer, h *install.Owned) {
	if len(h.Command) > 0 {
		if !runs(o, h.Command[0]) {
			t.problem(fmt.Sprintf("%s: the hook at %s starts %s, which is no program; install again", l.Path, h.Event, h.Command[0]))
		}
	}
	unit := time.Second
	if t.Runtime == "gemini" || t.Runtime == "qwen" && h.Timeout >= 1000 {
		unit = time.Millisecond
	}
	waits := time.Duration(h.Timeout) * unit
	if t.Runtime == "gemini" && h.Timeout > 0 && h.Timeout < 1000 {
		t.problem(fmt.Sprintf("%s: at %s Gemini CLI waits %s only: its timeouts are in milliseconds; install again", l.Path, h.Event, waits))
		return
	}
	i := slices.Index(h.Command, "--timeout")
	if i < 0 || i+1 >= len(h.Command) || waits == 0 {
		return
	}
	if shim, err := time.ParseDuration(h.Command[i+1]); err == nil && shim > waits {
		t.problem(fmt.Sprintf("%s: at %s the shim takes up to %s, and %s waits only %s, and then lets the call pass; install again", l.Path, h.Event, shim, t.Label, waits))
	}
}

// runs reports whether a hook's program can be started, where it will be.
func runs(o *Options, program string) bool {
	if filepath.IsAbs(program) {
		program = filepath.Join(o.Machine.Root, program)
	}
	_, err := exec.LookPath(program)
	return err == nil || errors.Is(err, exec.ErrDot)
}

// version says what the installed version could do, and is not told to.
func (t *Runtime) version() {
	if t.Runtime != "claude" {
		return
	}
	v, known := probe.ParseVersion(t.Version)
	blocks := slices.ContainsFunc(t.Layers, func(l Layer) bool {
		return slices.ContainsFunc(l.found.Hooks, func(h install.Owned) bool { return h.Event == "PreToolUse" && h.Blocks })
	})
	switch {
	case known && v.Before(install.Blocking()) && blocks:
		t.problem(fmt.Sprintf("Claude Code %s refuses settings with onFailure, which is from %s on; install again", v, install.Blocking()))
	case known && !v.Before(install.Blocking()) && !blocks:
		t.hint(fmt.Sprintf("Claude Code %s can block calls when a hook itself fails, and is not told to; install again", v))
	}
	t.hint("Claude Code runs no hooks with --bare or CLAUDE_CODE_SIMPLE, except in managed settings")
}

// trusted asks Codex which of our hooks it runs.
func (t *Runtime) trusted(ctx context.Context, o *Options) {
	if t.Program == "" || o.Machine.Root != "" {
		return
	}
	all, err := probe.CodexHooks(ctx, o.Machine.Dir)
	if err != nil {
		t.hint("whether Codex trusts the hooks could not be found out: " + err.Error())
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
		t.problem("Codex does not know the hooks: it reads those of a project only in folders that it trusts")
	case len(skipped) > 0:
		t.problem(fmt.Sprintf("Codex does not trust the hooks at %s, and skips them without a word; 'agentshim install codex --trust' has it trust them", strings.Join(skipped, ", ")))
	}
}

// express says what the runtime can not be told at the moments at which it asks.
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
