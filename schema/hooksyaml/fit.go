package hooksyaml

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// A misfit is a field that has no effect in its hook. A field with its default value is
// tolerated, so that a full example can be copied.
type misfit struct {
	key     string
	is      bool
	message string
	hint    string
}

// fit checks that a hook's fields belong to its kind, event and place.
func (r *reader) fit(d *draft) {
	h := &d.hook
	kind := func(key string, given bool, kinds ...schema.Kind) misfit {
		return misfit{key, given && h.Type != "" && !slices.Contains(kinds, h.Type),
			fmt.Sprintf("%s does not fit a hook of type %s", key, h.Type), instead(key, h.Type, kinds)}
	}
	known := h.Event != ""
	for _, m := range []misfit{
		kind("args", len(h.Args) > 0, schema.Command),
		kind("shell", h.Shell, schema.Command),
		kind("env", len(h.Env) > 0, schema.Command, schema.Python),
		kind("options", len(h.Options) > 0, schema.Builtin, schema.CEL),
		kind("headers", len(h.Headers) > 0, schema.HTTP),
		kind("sign", h.Sign != "", schema.HTTP),
		kind("tls", h.TLS != schema.TLS{}, schema.HTTP),
		{"tls", h.TLS != schema.TLS{} && h.Type == schema.HTTP && strings.HasPrefix(h.Handler, "http:"),
			"tls does not fit a URL that begins with http:", "write https: in the handler, or remove tls"},
		{"handler", h.Type == schema.HTTP && plainly(h.Handler) && tellsSecret(h),
			"the hook sends a secret over plain http, where every host on the way can read it", "write https: in the handler"},
		{"matcher", known && !h.Event.HasTool() && !matchesAll(h.Matcher),
			fmt.Sprintf("matcher does not fit %s, which is not about a tool", h.Event), "remove it, or write a condition with when:"},
		{"auto_approve", known && h.Event != schema.PreToolUse && h.AutoApprove,
			fmt.Sprintf("auto_approve does not fit %s: only PreToolUse can allow", h.Event), "remove it"},
		{"system", d.agent != "" && h.System,
			"system does not fit an agent's own hook, which no agent can override", "remove it, or write the hook below the global hooks:"},
	} {
		if e, ok := d.given[m.key]; ok && m.is {
			r.fault(e.at, m.message, m.hint)
		}
	}
	if h.Type == schema.Command && !h.Shell && strings.ContainsAny(h.Handler, " \t") && !d.broken {
		r.warn(d.given["handler"].value, fmt.Sprintf("the handler %s is read as one path with spaces in it; arguments belong into args:", quote(h.Handler)))
	}
	r.long(d)
}

// long warns of a long timeout, because runtimes may end the call earlier.
func (r *reader) long(d *draft) {
	needs := schema.RuntimeFor(d.hook.Timeout.Std())
	e, ok := d.given["timeout"]
	if !ok || needs <= schema.RuntimeTimeout || d.hook.Mode == schema.Shadow {
		return
	}
	whole := (needs + time.Second - 1).Truncate(time.Second)
	r.warn(e.value, fmt.Sprintf("a timeout of %s needs a runtime that waits %s; 'agentshim install' has runtimes wait %s, so there the hook ends after %s: install with --timeout %s, or shorten it",
		d.hook.Timeout.Std(), whole, schema.RuntimeTimeout, schema.RuntimeTimeout*4/5, whole))
}

func matchesAll(pattern string) bool {
	m, err := match.Compile(pattern)
	return err == nil && m.All()
}

// plainly reports whether a URL uses the network without TLS.
func plainly(handler string) bool {
	u, err := url.Parse(handler)
	return err == nil && u.Scheme == "http" && u.Hostname() != "localhost" && !isLoopback(u.Hostname())
}

// tellsSecret reports whether the requests of a hook contain credentials.
func tellsSecret(h *schema.Hook) bool {
	for _, value := range h.Headers {
		if reference.MatchString(value) {
			return true
		}
	}
	return h.Sign != ""
}

// instead returns what to write if key does not fit a hook of the kind.
func instead(key string, is schema.Kind, fits []schema.Kind) string {
	hint := "remove it: it belongs to " + joinKinds(fits)
	switch {
	case key == "env" && is == schema.HTTP:
		return "write headers: and ${NAME} where the variable belongs"
	case (key == "env" || key == "args") && is == schema.Builtin:
		return hint + "; a builtin has options:"
	case key == "options" && is == schema.Command:
		return hint + "; a command has args: and env:"
	case key == "options" && is == schema.Python:
		return hint + "; a function has env:"
	}
	return hint
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func joinKinds(kinds []schema.Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, " or ")
}
