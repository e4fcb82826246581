package cel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// The options of a hook of type cel. The expressions of deny, ask and allow are true or false, in this
// order: the first that is true decides. Reason and inject are texts, and rewrite is the new value.
const (
	Deny    = "deny"
	Ask     = "ask"
	Allow   = "allow"
	Reason  = "reason"
	Inject  = "inject"
	Rewrite = "rewrite"
)

// Options returns the names of the options, each with the result of its expression.
func Options() map[string]cond.Result {
	return map[string]cond.Result{Deny: cond.Truth, Ask: cond.Truth, Allow: cond.Truth, Reason: cond.Text, Inject: cond.Text, Rewrite: cond.Values}
}

// Check compiles the expression of an option. Its error has the type [schema.ConditionFaults], or is
// about the name.
func Check(c *cond.Compiler, option, expr string) (*cond.Expression, error) {
	result, ok := Options()[option]
	if !ok {
		return nil, fmt.Errorf("a hook of type cel has no option %q; write one of %s", option, strings.Join(slices.Sorted(maps.Keys(Options())), ", "))
	}
	return c.Expression(expr, result)
}

// A Runner loads hooks of type cel. It is safe for concurrent use.
type Runner struct {
	compiler func() (*cond.Compiler, error)
}

// New returns a Runner. It prepares CEL for the first hook.
func New() *Runner { return &Runner{sync.OnceValues(cond.NewCompiler)} }

// Load compiles the expressions of a hook.
func (r *Runner) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	compiler, err := r.compiler()
	if err != nil {
		return nil, err
	}
	out := &handler{name: h.Name, expressions: make(map[string]*cond.Expression)}
	for name, value := range h.Options {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("the option %q of a hook of type cel is not a text; write an expression in quotes", name)
		}
		if out.expressions[name], err = Check(compiler, name, text); err != nil {
			return nil, fmt.Errorf("the expression %q: %w", name, err)
		}
	}
	return out, out.fits(&h)
}

// Close has nothing to close.
func (*Runner) Close() error { return nil }

// handler is one hook.
type handler struct {
	name        string
	expressions map[string]*cond.Expression
}

// fits returns an error if an option has no effect at the hook's event.
func (c *handler) fits(h *schema.Hook) error {
	has := func(option string) bool { return c.expressions[option] != nil }
	switch {
	case len(c.expressions) == 0:
		return fmt.Errorf("a hook of type cel needs expressions in its options, such as deny")
	case has(Deny) && h.Event.Refusal() == schema.None:
		return fmt.Errorf("the expression \"deny\" refuses nothing at %s; move the hook to an event before something happens", h.Event)
	case has(Ask) && !h.Event.Permits(schema.Ask), has(Allow) && !h.Event.Permits(schema.Allow):
		return fmt.Errorf("the expressions \"ask\" and \"allow\" decide only at PreToolUse, not at %s", h.Event)
	case has(Rewrite) && h.Event.Rewrites() == schema.NoRewrite:
		return fmt.Errorf("the expression \"rewrite\" has nothing to rewrite at %s", h.Event)
	case has(Rewrite) && h.Readonly:
		return fmt.Errorf("the expression \"rewrite\" needs readonly: false")
	case has(Reason) && !has(Deny) && !has(Ask) && !has(Allow):
		return fmt.Errorf("the expression \"reason\" needs one of deny, ask and allow")
	}
	return nil
}

// Handle evaluates the expressions.
func (c *handler) Handle(_ context.Context, e *schema.Event) (schema.Result, error) {
	view := dispatch.ViewOf(e)
	var out schema.Result
	for _, d := range []struct {
		option   string
		decision schema.Decision
	}{{Deny, e.HookType.Refusal()}, {Ask, schema.Ask}, {Allow, schema.Allow}} {
		x := c.expressions[d.option]
		if x == nil {
			continue
		}
		is, err := x.Holds(view)
		if err != nil {
			return schema.Result{}, failed(d.option, err)
		}
		if is {
			out.Decision = d.decision
			break
		}
	}
	c.explain(view, &out)
	if e.HookType.Terminal(out.Decision) {
		return out, nil
	}
	return out, c.change(view, e, &out)
}

func failed(option string, err error) error { return fmt.Errorf("the expression %q: %w", option, err) }

// explain sets the reason of a decision.
func (c *handler) explain(v *dispatch.View, out *schema.Result) {
	if out.Decision == schema.None {
		return
	}
	if x := c.expressions[Reason]; x != nil {
		reason, err := x.Text(v)
		if err == nil {
			out.Reason = reason
			return
		}
		out.HookErrors = []string{failed(Reason, err).Error()} // the decision stands
	}
	if out.Decision != schema.Allow {
		out.Reason = fmt.Sprintf("the hook %q decided %s about this call", c.name, out.Decision)
	}
}

// change sets the injection and the rewrite.
func (c *handler) change(v *dispatch.View, e *schema.Event, out *schema.Result) error {
	if x := c.expressions[Inject]; x != nil {
		text, err := x.Text(v)
		if err != nil {
			return failed(Inject, err)
		}
		if text != "" {
			out.Injections = []schema.Injection{{Content: text, Strategy: schema.ToolResult}}
		}
	}
	x := c.expressions[Rewrite]
	if x == nil {
		return nil
	}
	value, err := x.JSON(v)
	if err != nil || value == nil {
		if err != nil {
			err = failed(Rewrite, err)
		}
		return err
	}
	switch e.HookType.Rewrites() {
	case schema.RewriteInput:
		out.UpdatedInput = value
	case schema.RewriteOutput:
		out.UpdatedOutput = value
	default:
		out.Value = value
	}
	return nil
}
