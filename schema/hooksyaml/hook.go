package hooksyaml

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// A place is the position of a hook in the file.
type place struct {
	// agent is empty for global hooks.
	agent string
	// event is empty in the flat list, and if its name was faulty.
	event schema.EventType
	flat  bool
}

// A draft is a hook during reading.
type draft struct {
	place
	hook schema.Hook
	at   *yaml.Node
	// given are the present keys with their values.
	given map[string]entry
	// mistaken means that the handler's key has a wrong name, which is already a fault.
	mistaken bool
	// broken means that a fault was found, so that checks of dependent fields are
	// skipped.
	broken bool
}

// hook reads one hook and appends it to the order.
func (r *reader) hook(n *yaml.Node, p place) {
	if len(r.drafts) >= MaxHooks {
		if !r.overflow {
			r.overflow = true
			r.fault(n, fmt.Sprintf("hook %d begins here; the limit is %d", MaxHooks+1, MaxHooks), "write several hooks as one with a broader matcher")
		}
		return
	}
	entries, ok := r.mapping(n, "a hook", "write handler: and what else it needs")
	if !ok {
		return
	}
	d := draft{place: p, at: n, given: make(map[string]entry, len(entries))}
	d.hook = schema.Hook{Agent: p.agent, Timeout: schema.DefaultTimeout, Pool: schema.DefaultPool}
	faults := len(r.faults)
	for _, e := range entries {
		r.hookEntry(&d, e)
	}
	if !p.flat {
		d.hook.Event = p.event
	} else if _, ok := d.given["type"]; !ok {
		r.fault(n, "a hook of the flat list names no event", "write type: with the event, such as type: PreToolUse")
	}
	r.handler(&d)
	d.broken = len(r.faults) > faults
	r.fit(&d)
	r.fitStage(&d)
	d.fillDefaults()
	r.drafts = append(r.drafts, d)
}

// hookEntry reads one key of a hook.
func (r *reader) hookEntry(d *draft, e entry) {
	read, ok := fields[e.key]
	if !ok {
		r.unknownField(d, e)
		return
	}
	d.given[e.key] = e
	read(r, &d.hook, e)
	if e.key == "type" && d.flat {
		d.hook.Type = ""
		if s, ok := r.word(e.value, "type", "write the event, such as PreToolUse"); ok {
			d.hook.Event = r.flatEvent(e.value, s)
		}
	} else if e.key == "type" {
		r.kind(&d.hook, e)
	} else if e.key == "callable" && !d.flat {
		r.fault(e.at, "callable belongs to the flat list of hooks", "write handler:")
	}
}

func (r *reader) flatEvent(n *yaml.Node, s string) schema.EventType {
	if slices.Contains(schema.Kinds(), schema.Kind(s)) {
		r.fault(n, fmt.Sprintf("in the flat list of hooks type names the event, not the kind %s", s),
			"write the hook below its event: PreToolUse: [{type: "+s+", handler: ...}]")
		return ""
	}
	return r.event(n, s)
}

// fillDefaults sets the defaults that depend on other fields. Empty values become absent,
// so that encoding does not change a configuration.
func (d *draft) fillDefaults() {
	h := &d.hook
	if len(h.Options) == 0 {
		h.Options = nil
	}
	if len(h.Headers) == 0 {
		h.Headers = nil
	}
	if _, ok := d.given["timeout"]; !ok && h.Type == schema.Builtin && h.Handler == delayHandler {
		h.Timeout += schema.Duration(clamped(h.Options[delaySeconds]) * float64(time.Second))
	}
	for _, list := range []*[]string{&h.Args, &h.Needs, &h.Env} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if h.Stage() {
		h.Pool, h.Readonly, h.Idempotent = "", true, true
		return
	}
	if h.Event == "" {
		return
	}
	if e, ok := d.given["readonly"]; !ok || e.isNull() {
		h.Readonly = h.Event.ReadonlyByDefault()
	}
	if e, ok := d.given["idempotent"]; !ok || e.isNull() {
		h.Idempotent = h.Readonly
	}
}

var (
	dotted  = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)+$`)
	builtin = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
)

// isPath reports whether a handler looks like the path of a program.
func isPath(handler string) bool {
	return strings.Contains(handler, "/") || strings.HasSuffix(handler, ".sh") || strings.HasSuffix(handler, ".py")
}

// isAddress reports whether a host is an IP address.
func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func isURL(handler string) bool {
	return strings.HasPrefix(handler, "http://") || strings.HasPrefix(handler, "https://")
}

// handler finds the handler of a hook, and checks it.
func (r *reader) handler(d *draft) {
	e, ok := d.given["handler"]
	c, called := d.given["callable"]
	switch {
	case ok && called:
		r.fault(c.at, "the hook has a handler and a callable", "keep one of them")
	case called:
		e, d.hook.Type = c, schema.Python
	case ok && d.hook.Type == schema.CEL:
		r.fault(e.at, "a hook of type cel has no handler", "remove it, and write its expressions below options:")
		return
	case d.hook.Type == schema.CEL:
		r.expressions(d)
		return
	case !ok && d.mistaken:
		return
	case !ok:
		r.fault(d.at, "the hook has no handler", "write handler: with a program's path, a Python function, a builtin's name or a URL")
		return
	}
	if d.hook.Handler == "" {
		return
	}
	if _, ok := d.given["type"]; d.hook.Type == "" && (!ok || d.flat) {
		d.hook.Type = r.inferred(d.hook.Handler, e.value)
	}
	r.plausible(d.hook.Type, d.hook.Handler, e.value)
}

// inferred returns the kind of a hook without one.
func (r *reader) inferred(handler string, n *yaml.Node) schema.Kind {
	kind := kindByForm(handler)
	switch {
	case isURL(handler):
		r.fault(n, "the handler is a URL, but the hook has no type", "write type: http")
	case kind == "":
		r.fault(n, fmt.Sprintf("the type of the handler %s is not clear", quote(handler)),
			"write type: builtin, or type: command for a program on the PATH")
	}
	return kind
}

// kindByForm returns the kind that the form of a handler implies; empty: it implies none.
func kindByForm(handler string) schema.Kind {
	switch {
	case isURL(handler):
		return ""
	case isPath(handler):
		return schema.Command
	case dotted.MatchString(handler):
		return schema.Python
	}
	return ""
}

// plausible checks a handler's form. Workers check whether it exists.
func (r *reader) plausible(kind schema.Kind, handler string, n *yaml.Node) {
	switch {
	case kind == schema.Python && isPath(handler):
		r.fault(n, fmt.Sprintf("the python handler %s is a file; it must be a function", quote(handler)), "write its dotted name, such as my_pkg.hooks.check, or type: command to run the file")
	case kind == schema.Python && !dotted.MatchString(handler):
		r.fault(n, fmt.Sprintf("the python handler %s is not a function's dotted name", quote(handler)), "write module and function, such as my_pkg.hooks.check")
	case kind == schema.Builtin && !builtin.MatchString(handler):
		r.fault(n, fmt.Sprintf("the builtin %s has characters that no builtin's name has", quote(handler)), "write a builtin's name, such as log")
	case kind == schema.HTTP:
		r.plausibleURL(handler, n)
	}
}

// derivedName returns the name of a hook without one: its handler without the path.
func derivedName(h schema.Hook) string {
	s := h.Handler
	switch h.Type {
	case schema.Command:
		s = path.Base(s)
		if short := strings.TrimSuffix(s, path.Ext(s)); short != "" {
			s = short
		}
	case schema.CEL:
		s = string(schema.CEL)
	case schema.HTTP:
		_, s, _ = strings.Cut(s, "://")
		s, _, _ = strings.Cut(s, "?")
		s = strings.TrimSuffix(s, "/")
	}
	const room = len("-20000")
	if most := maxName - room; len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '_'
		}
		return c
	}, s)
}

// clamped returns the number of seconds by which a timeout is extended; 0 if it is
// invalid.
func clamped(v any) float64 {
	switch n := v.(type) {
	case float64:
		return min(max(n, 0), maxDelay)
	case int64:
		return min(max(float64(n), 0), maxDelay)
	case int:
		return min(max(float64(n), 0), maxDelay)
	}
	return 0
}

// maxDelay is the longest delay in seconds that a timeout is extended by.
const maxDelay = 23 * 60 * 60
