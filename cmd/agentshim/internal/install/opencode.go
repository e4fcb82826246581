package install

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
	"github.com/hookfabric/hookfabric/schema"
)

// plugin is what OpenCode runs in its own process: it has no command hooks.
//
//go:embed opencode.js
var plugin []byte

// noSettings is the line of the plugin that an installation replaces.
const noSettings = "const SETTINGS = {};\n"

type pluginSettings struct {
	Shim        string   `json:"agentshim"`
	Args        []string `json:"args,omitzero"`
	Agent       string   `json:"agent,omitzero"`
	State       string   `json:"state,omitzero"`
	Daemon      any      `json:"daemon,omitzero"`
	TimeoutMs   int64    `json:"timeoutMs"`
	Unreachable string   `json:"unreachable,omitzero"`
}

func opencode() *runtime {
	return &runtime{
		name: "opencode", label: "OpenCode", binary: "opencode", plugin: true, syntax: edit.Comments | edit.Mark,
		places: map[Scope]place{
			User:    {anchor: home, path: ".config/opencode/plugin/agentshim.js", env: "XDG_CONFIG_HOME", below: "opencode/plugin/agentshim.js"},
			Project: {anchor: folder, path: ".opencode/plugin/agentshim.js", reach: upward},
			Managed: {path: "/etc/opencode/agentshim.js", darwin: "/Library/Application Support/opencode/agentshim.js"},
		},
	}
}

func (r *Request) settings() ([]byte, error) {
	h := &r.Hook
	s := pluginSettings{Shim: h.Shim, Agent: h.Agent, State: h.State, TimeoutMs: h.Timeout.Milliseconds(), Unreachable: h.Unreachable}
	if h.NATS != "" {
		s.Args, s.Daemon = append(s.Args, "--nats", h.NATS), false
	}
	for _, f := range [][2]string{{"--creds", h.Creds}, {"--tls-ca", h.TLS.CA}, {"--tls-cert", h.TLS.Cert}, {"--tls-key", h.TLS.Key}, {"--unreachable", h.Unreachable}} {
		if f[1] != "" {
			s.Args = append(s.Args, f[0], f[1])
		}
	}
	if r.Scope == Managed {
		s.Args = append(s.Args, "--managed")
	}
	b, err := schema.Marshal(s)
	return append([]byte("const SETTINGS = "), append(b, ";\n"...)...), err
}

// ourPlugin reports whether a file is agentshim's plugin, of any version.
func ourPlugin(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.HasPrefix(first, []byte("// The fabric's plugin for OpenCode, written here by"))
}

// installPlugin writes the plugin, and adds it to the configuration if OpenCode does not find it itself.
func (t *runtime) installPlugin(f file, r *Request) (Plan, error) {
	if f.there && !ourPlugin(f.content) {
		return Plan{}, fmt.Errorf("%s is not a plugin of agentshim; remove it, and install again", f.path)
	}
	line, err := r.settings()
	if err != nil {
		return Plan{}, err
	}
	text := bytes.Replace(plugin, []byte(noSettings), line, 1)
	if bytes.Equal(text, plugin) {
		return Plan{}, errors.New("the plugin has no line for its settings")
	}
	c := f.become(text, r.Scope)
	c.summary = "OpenCode now asks the fabric through this plugin"
	if f.there {
		c.summary = "the plugin is now up to date"
	}
	p := Plan{Changes: []Change{c}}
	if r.Scope != Managed {
		return p, nil
	}
	named, err := t.mention(r, true)
	p.Changes = append(p.Changes, named...)
	return p, err
}

func (t *runtime) uninstallPlugin(f file, r *Request) (Plan, error) {
	var p Plan
	if f.there && ourPlugin(f.content) {
		c := f.become(nil, r.Scope)
		c.summary = "removed the plugin of agentshim from OpenCode"
		p.Changes = append(p.Changes, c)
	}
	if r.Scope != Managed {
		return p, nil
	}
	named, err := t.mention(r, false)
	p.Changes = append(named, p.Changes...) // the configuration must not name a missing file
	return p, err
}

// mention adds the plugin to OpenCode's managed configuration, or removes it.
func (t *runtime) mention(r *Request, wanted bool) ([]Change, error) {
	path, err := r.path(t)
	if err != nil {
		return nil, err
	}
	f, err := read(filepath.Join(filepath.Dir(path), "opencode.json"))
	if err != nil {
		return nil, err
	}
	d, err := edit.ParseAs(f.content, t.syntax)
	if err != nil {
		return nil, t.unreadable(f.path, err)
	}
	plain := Request{Scope: r.Scope, Machine: Machine{OS: r.Machine.OS}} // without Root, as OpenCode will see it
	if path, err = plain.path(t); err != nil {
		return nil, err
	}
	url, err := schema.Marshal("file://" + path)
	if err != nil {
		return nil, err
	}
	isPlugin := func(v jsontext.Value) bool { return edit.Equal(v, url) }
	at := slices.IndexFunc(d.Elements("plugin"), isPlugin)
	var c Change
	switch {
	case wanted == (at >= 0):
		return nil, nil
	case wanted:
		if err := d.Append(url, "plugin"); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		c = f.become(d.Text(), Managed)
		c.backup, c.summary = true, "OpenCode now loads the plugin for all users"
	default:
		if d.Drop(at, "plugin"); len(d.Elements("plugin")) == 0 {
			d.Delete("plugin")
		}
		c = t.without(f, d, &Request{Scope: Managed})
		c.summary = "OpenCode no longer loads the plugin"
	}
	c.shown = func(text []byte) []byte {
		return edit.Mask(text, hidden, func(_ []string, v jsontext.Value) bool { return isPlugin(v) })
	}
	return []Change{c}, nil
}

// unnamed returns which part of the managed configuration does not name the installed plugin.
func (r *Request) unnamed(t *runtime) ([]string, error) {
	if r.Scope != Managed {
		return nil, nil
	}
	changes, err := t.mention(r, true)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	return []string{"plugin in " + changes[0].Path}, nil
}

// pluginHook returns the command that an installed plugin starts if no daemon answers.
func pluginHook(text []byte) Owned {
	o := Owned{Event: "tool.execute.before", Gate: true, Blocks: true}
	line, s, ok := settingsOf(text)
	if !ok || !bytes.Equal(text, bytes.Replace(plugin, []byte(noSettings), line, 1)) { // not as an installation with these settings writes it
		o.Differs = []string{"its text"}
	}
	if ok {
		o.Command = []string{s.Shim, "hook", "--runtime", "opencode", "--event", o.Event}
		if s.Agent != "" {
			o.Command = append(o.Command, "--agent", s.Agent)
		}
		o.Command = append(o.Command, s.Args...)
		if s.State != "" {
			o.Command = append(o.Command, "--state", s.State)
		}
	}
	return o
}

// settingsOf returns the line with the settings of an installed plugin.
func settingsOf(text []byte) (line []byte, s pluginSettings, ok bool) {
	const begin, end = "const SETTINGS = ", ";\n"
	_, rest, found := bytes.Cut(text, []byte("\n"+begin))
	inner, _, whole := bytes.Cut(rest, []byte(end))
	ok = found && whole && schema.Unmarshal(inner, &s) == nil && s.Shim != ""
	return slices.Concat([]byte(begin), inner, []byte(end)), s, ok
}
