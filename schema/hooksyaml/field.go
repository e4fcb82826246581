package hooksyaml

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// The bounds of a hook's fields.
const (
	maxName    = 128
	maxText    = 4096
	maxItems   = 256
	maxTimeout = 24 * time.Hour
	maxAtOnce  = 1_000_000
)

// hookKeys are the keys of a hook, in the documented order.
var hookKeys = []string{"name", "matcher", "type", "handler", "args", "timeout", "fail_closed", "pool", "readonly", "idempotent",
	"mode", "when", "needs", "max_concurrent", "system", "auto_approve", "shell", "env", "options", "headers", "sign", "tls"}

// fields has a reader for each key. The type has none, because its meaning depends on the
// place: the kind below an event, and the event in the flat list.
var fields = map[string]func(*reader, *schema.Hook, entry){
	"name":           (*reader).name,
	"matcher":        (*reader).matcher,
	"type":           func(*reader, *schema.Hook, entry) {},
	"handler":        (*reader).handlerText,
	"callable":       (*reader).handlerText,
	"args":           func(r *reader, h *schema.Hook, e entry) { h.Args = r.list(e, "args", r.argument) },
	"timeout":        (*reader).timeout,
	"fail_closed":    func(r *reader, h *schema.Hook, e entry) { h.FailClosed = r.flag(e) },
	"pool":           (*reader).pool,
	"readonly":       func(r *reader, h *schema.Hook, e entry) { h.Readonly = r.flag(e) },
	"idempotent":     func(r *reader, h *schema.Hook, e entry) { h.Idempotent = r.flag(e) },
	"mode":           (*reader).mode,
	"when":           (*reader).when,
	"needs":          func(r *reader, h *schema.Hook, e entry) { h.Needs = r.list(e, "needs", r.need) },
	"max_concurrent": (*reader).maxConcurrent,
	"system":         func(r *reader, h *schema.Hook, e entry) { h.System = r.flag(e) },
	"auto_approve":   func(r *reader, h *schema.Hook, e entry) { h.AutoApprove = r.flag(e) },
	"shell":          func(r *reader, h *schema.Hook, e entry) { h.Shell = r.flag(e) },
	"env":            func(r *reader, h *schema.Hook, e entry) { h.Env = r.list(e, "env", r.variable) },
	"options":        (*reader).readOptions,
	"headers":        (*reader).headers,
	"sign":           (*reader).sign,
	"tls":            (*reader).tls,
}

func (r *reader) name(h *schema.Hook, e entry) {
	s, ok := r.word(e.value, "name", "write a name, or remove the key to have one made")
	switch {
	case !ok:
	case len(s) > maxName:
		r.fault(e.value, fmt.Sprintf("the name has %d bytes; the limit is %d", len(s), maxName), "write a shorter one")
	case strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }):
		r.fault(e.value, "the name has characters that cannot be printed", "write it without them")
	default:
		h.Name = s
	}
}

func (r *reader) matcher(h *schema.Hook, e entry) {
	if e.isNull() {
		return
	}
	s, ok := r.text(e.value, "matcher", `write names of tools, such as "Write|Edit", or a glob in quotes`)
	if !ok {
		return
	}
	if _, err := match.Compile(s); err != nil {
		r.badPattern(e.value, "the matcher", err)
		return
	}
	if advice := match.Advice(s); advice != "" {
		r.warn(e.value, advice)
	}
	h.Matcher = s
}

const kindHint = "write builtin, cel, command, python or http"

func (r *reader) kind(h *schema.Hook, e entry) {
	s, ok := r.word(e.value, "type", kindHint)
	if !ok {
		return
	}
	var names []string
	for _, k := range schema.Kinds() {
		if names = append(names, string(k)); string(k) == s {
			h.Type = k
			return
		}
	}
	hint := kindHint
	if isEvent(s) {
		hint = "the event already stands above the list; type is builtin, cel, command, python or http"
	}
	hint = hintFor(s, names, hint)
	r.fault(e.value, fmt.Sprintf("there is no type %s", quote(s)), hint)
}

func (r *reader) handlerText(h *schema.Hook, e entry) {
	h.Handler, _ = r.word(e.value, e.key, "write a program's path, a Python function, a builtin's name or a URL")
}

func (r *reader) plausibleURL(handler string, n *yaml.Node) {
	u, err := url.Parse(handler)
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(handler, "@"):
		r.hide(n)
		r.fault(n, "the handler's URL carries a user or a password", `remove it, and write headers: with Authorization: "Basic ${POLICY_LOGIN}"`)
	case err != nil, !isURL(handler), u.Host == "":
		r.fault(n, fmt.Sprintf("the http handler %s is not a URL", quote(handler)), "write one such as https://policy.example/hook")
	case strings.Contains(handler, "#"):
		r.fault(n, "the handler's URL has a fragment, which HTTP does not send", "remove the # and what follows")
	}
}

func (r *reader) pool(h *schema.Hook, e entry) {
	s, ok := r.word(e.value, "pool", "write a pool's name, such as gpu")
	if !ok {
		return
	}
	if !schema.IsPool(s) {
		r.fault(e.value, fmt.Sprintf("the pool %s is not a pool name", quote(s)), "write 1 to 64 letters, digits, - and _")
		return
	}
	h.Pool = s
}

var (
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

func (r *reader) mode(h *schema.Hook, e entry) {
	switch s, ok := r.word(e.value, "mode", "write enforce or shadow"); {
	case !ok, s == "enforce":
	case s == string(schema.Shadow):
		h.Mode = schema.Shadow
	default:
		r.fault(e.value, fmt.Sprintf("there is no mode %s", quote(s)), "write enforce, or shadow for a hook that is only watched")
	}
}

func (r *reader) when(h *schema.Hook, e entry) {
	s, ok := r.text(e.value, "when", `write a condition in quotes, such as 'tool_input.command.contains("rm ")'`)
	if !ok || strings.TrimSpace(s) == "" {
		return
	}
	if r.options.CheckCondition != nil {
		if err := r.options.CheckCondition(s); err != nil {
			r.badCondition(e.value, "the condition", err)
		}
	}
	h.When = s
}

// expressions checks the options of a hook of type cel.
func (r *reader) expressions(d *draft) {
	entries, ok := d.given["options"]
	if !ok {
		r.fault(d.at, "the hook of type cel has no expressions", `write options: with an expression, such as {deny: 'action.commands.exists(c, c.name == "rm")'}`)
		return
	}
	if entries.value.Kind != yaml.MappingNode {
		return // a fault already
	}
	for i := 0; i+1 < len(entries.value.Content); i += 2 {
		name, n := entries.value.Content[i], deref(entries.value.Content[i+1])
		if n.Tag != "!!str" {
			r.fault(n, fmt.Sprintf("the expression %s is %s; it must be text", clip(name.Value), describe(n)), "write it in quotes")
			continue
		}
		if r.options.CheckExpression == nil {
			continue
		}
		err := r.options.CheckExpression(name.Value, n.Value)
		if _, compiled := errors.AsType[schema.ConditionFaults](err); compiled {
			r.badCondition(n, "the expression "+name.Value, err)
		} else if err != nil {
			r.fault(name, err.Error(), "")
		}
	}
}

func (r *reader) need(n *yaml.Node) (string, bool) {
	if n.Tag == "!!str" && slices.Contains([]string{schema.NeedNative, schema.NeedHistory, schema.NeedAction}, n.Value) {
		return n.Value, true
	}
	r.fault(n, fmt.Sprintf("needs lists %s, which is unknown", describe(n)), "write native, history or action")
	return "", false
}

func (r *reader) variable(n *yaml.Node) (string, bool) {
	s, ok := r.word(n, "a variable of env", "write the name of an environment variable")
	if !ok || variable.MatchString(s) {
		return s, ok
	}
	hint := "write letters, digits and _"
	if name, _, valued := strings.Cut(s, "="); valued {
		r.hide(n)
		s, hint = name+"=…", "write only its name: values come from the worker's environment"
	}
	r.fault(n, fmt.Sprintf("%s is not a name of an environment variable", quote(s)), hint)
	return "", false
}

func (r *reader) argument(n *yaml.Node) (string, bool) {
	hint := "write each argument as text"
	if n.Kind == yaml.ScalarNode {
		hint = "put it in quotes: " + quote(n.Value)
	}
	s, ok := r.text(n, "an argument", hint)
	if ok && strings.ContainsRune(s, 0) {
		r.fault(n, "an argument has a NUL in it, which no program can receive", "write it without")
		return "", false
	}
	return s, ok
}

func (r *reader) maxConcurrent(h *schema.Hook, e entry) {
	h.MaxConcurrent = r.whole(e, 0, maxAtOnce, fmt.Sprintf("write a number from 0, the worker's own bound, to %d", maxAtOnce))
}

const timeoutHint = `write seconds, such as 5 or 0.5, or a duration, such as 1m30s`

// timeout reads seconds or a duration.
func (r *reader) timeout(h *schema.Hook, e entry) {
	var d time.Duration
	switch e.value.Tag {
	case "!!int", "!!float":
		if r.octal(e.value) {
			return
		}
		var seconds float64
		if err := e.value.Decode(&seconds); err != nil || math.IsNaN(seconds) || math.Abs(seconds) > 1e9 {
			r.fault(e.value, fmt.Sprintf("timeout is %s, which is not a duration", describe(e.value)), timeoutHint)
			return
		}
		d = time.Duration(math.Round(seconds * float64(time.Second)))
	default:
		var err error
		if d, err = time.ParseDuration(e.value.Value); err != nil || e.value.Tag != "!!str" {
			r.fault(e.value, fmt.Sprintf("timeout is %s, which is not a duration", describe(e.value)), timeoutHint)
			return
		}
	}
	if d < time.Millisecond || d > maxTimeout {
		r.fault(e.value, fmt.Sprintf("timeout is %s; it must be between a millisecond and a day", clip(e.value.Value)), timeoutHint)
		return
	}
	h.Timeout = schema.Duration(d)
}

// badPattern reports the fault of a pattern at the faulty character.
func (r *reader) badPattern(n *yaml.Node, what string, err error) {
	e, ok := errors.AsType[*match.SyntaxError](err)
	if !ok {
		r.fault(n, err.Error(), "")
		return
	}
	r.faultIn(n, e.Offset, fmt.Sprintf("%s %s %s", what, quote(n.Value), e.Message), e.Hint)
}
