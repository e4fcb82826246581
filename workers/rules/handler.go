package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// Factory returns what makes handlers of the builtin "rules". It prepares CEL for the first one.
func Factory() workers.Factory {
	compiler := sync.OnceValues(cond.NewCompiler)
	return func(h schema.Hook) (workers.Handler, error) {
		c, err := compiler()
		if err != nil {
			return nil, err
		}
		raw, err := schema.Marshal(h.Options)
		if err != nil {
			return nil, fmt.Errorf("reading the options of %q: %w", h.Handler, err)
		}
		var options schema.RuleSet
		if err := json.Unmarshal(raw, &options, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("the options of %q are not rules; write packs: instead, with the rules in a file: %w", h.Handler, err)
		}
		for i := range options.Rules {
			if r := &options.Rules[i]; !r.Action.Fits(h.Event) {
				return nil, fmt.Errorf("the rule %q cannot %s at %s; write another action", r.ID, r.Action, h.Event)
			}
		}
		set, err := Compile(c, &options)
		if err != nil {
			return nil, err
		}
		return handler{set}, nil
	}
}

// handler is one hook.
type handler struct{ set *Set }

// Handle answers with the strongest action of the rules that match.
func (h handler) Handle(_ context.Context, e *schema.Event) (schema.Result, error) {
	matched, err := h.set.Match(e)
	if err != nil || len(matched) == 0 {
		return schema.Result{}, err
	}
	return answer(e.HookType, matched), nil
}

// strength orders actions.
var strength = []schema.RuleAction{schema.RuleWarn, schema.RuleAsk, schema.RuleDeny}

func answer(t schema.EventType, matched []*schema.Rule) schema.Result {
	first := slices.MaxFunc(matched, func(a, b *schema.Rule) int {
		return slices.Index(strength, a.Action) - slices.Index(strength, b.Action)
	})
	text := explained(first, matched)
	if first.Action == schema.RuleWarn {
		return schema.Result{Injections: []schema.Injection{{Content: text, Strategy: schema.ToolResult}}}
	}
	return schema.Result{Decision: first.Action.Decision(t), Reason: text}
}

// explained returns the title, the message and the id of a rule, and the ids of the others.
func explained(first *schema.Rule, matched []*schema.Rule) string {
	text := fmt.Sprintf("%s: %s (rule %s", first.Title, first.Message, first.ID)
	var others []string
	for _, r := range matched {
		if r != first {
			others = append(others, r.ID)
		}
	}
	if len(others) > 0 {
		text += "; also " + strings.Join(others, ", ")
	}
	return text + ")"
}
