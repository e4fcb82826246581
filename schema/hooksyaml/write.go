package hooksyaml

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// Write returns cfg as a hooks.yaml that reads back as the same configuration. It omits
// defaults, derived names and the hooks of presets. It groups hooks by agent and event, and
// keeps the order of the hooks of one event. Equal configurations give equal text.
//
// A comment marks what a file cannot express: the hooks that were registered at run time.
func Write(cfg *schema.Config) []byte {
	written := *cfg
	written.Hooks = slices.DeleteFunc(slices.Clone(cfg.Hooks), func(h schema.Hook) bool { return h.Derived() })
	sections := arrange(&written)
	w := writer{named: named(inOrder(sections))}
	var out bytes.Buffer
	for _, part := range []mapping{settings(cfg), python(cfg.Python), w.global(sections), w.agents(sections)} {
		if len(part.node().Content) == 0 {
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		out.Write(dump(part.node()))
	}
	return out.Bytes()
}

// dump encodes a value. It avoids lines that YAML would fold, and escapes invisible
// characters.
func dump(n *yaml.Node) []byte {
	quoteHidden(n)
	text, err := yaml.Dump(n, yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1))
	if err != nil {
		return []byte("# This part cannot be written: " + printable(err.Error()) + "\n")
	}
	return []byte(schema.VisibleText(string(text)))
}

// quoteHidden quotes texts with invisible characters, so that they can be escaped.
func quoteHidden(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && schema.VisibleText(n.Value) != n.Value {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		quoteHidden(c)
	}
}

// settings returns the keys above the hooks.
func settings(cfg *schema.Config) mapping {
	var m mapping
	if !slices.Equal(cfg.Presets, presetNames) {
		m.add("presets", list(cfg.Presets))
	}
	if len(cfg.Packs) > 0 {
		m.add("packs", packList(cfg.Packs))
	}
	if len(cfg.PackExceptions) > 0 {
		m.add("pack_exceptions", exceptionList(cfg.PackExceptions))
	}
	m.list("python_path", cfg.PythonPath)
	return m
}

// packList returns packs, each as its name if that says all.
func packList(packs []schema.Pack) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, p := range packs {
		var m mapping
		m.text("file", p.File)
		m.text("mode", string(p.Mode))
		m.list("exclude", p.Exclude)
		m.list("shadow", p.Shadow)
		if p.Unparsed != schema.RuleAsk {
			m.text("unparsed", string(p.Unparsed))
		}
		if p.Dynamic != schema.RuleShadow {
			m.text("dynamic", string(p.Dynamic))
		}
		if len(m.content) == 0 {
			n.Content = append(n.Content, scalar("!!str", p.Name))
			continue
		}
		named := mapping{}
		named.text("name", p.Name)
		named.content = append(named.content, m.content...)
		n.Content = append(n.Content, named.node())
	}
	return n
}

func exceptionList(all []schema.RuleException) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, x := range all {
		var m mapping
		m.text("rule", x.Rule)
		m.text("agents", x.Agents)
		m.text("until", x.Until)
		m.text("owner", x.Owner)
		n.Content = append(n.Content, m.node())
	}
	return n
}

func python(p schema.PythonHosts) mapping {
	var m, out mapping
	m.text("interpreter", p.Interpreter)
	m.number("hosts", p.Hosts)
	if p.Memory != 0 {
		m.add("memory", size(p.Memory))
	}
	m.number("recycle", p.Recycle)
	if len(m.content) > 0 {
		out.add("python", m.node())
	}
	return out
}

// size formats a number of bytes for people.
func size(bytes int64) *yaml.Node {
	for _, unit := range []string{"GiB", "GB", "MiB", "MB", "KiB", "KB"} {
		if each := int64(units[unit]); bytes%each == 0 {
			return scalar("!!str", strconv.FormatInt(bytes/each, 10)+unit)
		}
	}
	return scalar("!!int", strconv.FormatInt(bytes, 10))
}

// A writer writes hooks.
type writer struct {
	// named are the hooks whose names could not be derived again.
	named map[*schema.Hook]bool
}

func (w *writer) global(sections []section) mapping {
	var m mapping
	if len(sections) == 0 {
		m.add("hooks", mapping{}.node())
	} else if sections[0].agent == "" {
		m.add("hooks", w.events(sections[0]))
	}
	return m
}

func (w *writer) agents(sections []section) mapping {
	var m mapping
	agents := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range sections {
		if s.agent == "" {
			continue
		}
		var a mapping
		a.text("id", s.agent)
		a.add("hooks", w.events(s))
		agents.Content = append(agents.Content, a.node())
	}
	if len(agents.Content) > 0 {
		m.add("agents", agents)
	}
	return m
}

const registered = "registered at run time"

// events returns the events of an agent with their hooks, or with a mapping that
// overrides the global ones.
func (w *writer) events(s section) *yaml.Node {
	var m mapping
	for _, e := range s.events {
		hooks := &yaml.Node{Kind: yaml.SequenceNode}
		for _, h := range e.hooks {
			hooks.Content = append(hooks.Content, w.hook(h))
		}
		if e.override == nil {
			m.add(string(e.event), hooks)
			continue
		}
		var o mapping
		o.flag("override", true, false)
		o.add("hooks", hooks)
		m.add(string(e.event), o.node())
		if e.override.Registered {
			o.content[0].HeadComment = registered
		}
	}
	return m.node()
}

// hook returns one hook with its keys in the order of hookKeys.
func (w *writer) hook(h *schema.Hook) *yaml.Node {
	var m mapping
	if w.named[h] {
		m.text("name", h.Name)
	}
	m.text("matcher", h.Matcher)
	if kindByForm(h.Handler) != h.Type {
		m.text("type", string(h.Type))
	}
	m.text("handler", h.Handler)
	m.list("args", h.Args)
	if h.Timeout != schema.DefaultTimeout && h.Timeout != 0 {
		m.add("timeout", timeout(h.Timeout.Std()))
	}
	m.flag("fail_closed", h.FailClosed, false)
	if h.Pool != schema.DefaultPool && !h.Stage() {
		m.text("pool", h.Pool)
	}
	m.flag("readonly", h.Readonly, h.Event.ReadonlyByDefault() || h.Stage())
	m.flag("idempotent", h.Idempotent, h.Readonly)
	m.text("mode", string(h.Mode))
	m.text("when", h.When)
	m.list("needs", h.Needs)
	m.number("max_concurrent", h.MaxConcurrent)
	m.flag("system", h.System, false)
	m.flag("auto_approve", h.AutoApprove, false)
	m.flag("shell", h.Shell, false)
	m.list("env", h.Env)
	object(&m, "options", h.Options)
	object(&m, "headers", h.Headers)
	m.text("sign", h.Sign)
	m.tls(h.TLS)
	n := m.node()
	if h.Registered {
		n.HeadComment = registered
	}
	return n
}

// timeout returns a number of seconds, or a duration if that is shorter.
func timeout(d time.Duration) *yaml.Node {
	if d <= time.Minute && d%time.Second == 0 {
		return scalar("!!int", strconv.Itoa(int(d/time.Second)))
	}
	s := d.String()
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return scalar("!!str", s)
}
