package guard

import (
	"fmt"
	"strconv"

	"github.com/hookfabric/hookfabric/schema"
)

// Document returns what shims need to know of a configuration, and its JSON. If the JSON would
// be larger than [schema.MaxPolicy], Document simplifies it. A simplified policy guards more
// calls, never fewer.
func Document(cfg *schema.Config) (p schema.Policy, data []byte, err error) {
	return DocumentUpTo(cfg, schema.MaxPolicy)
}

// DocumentUpTo is [Document] with another limit in bytes. It returns the simplest policy, of a
// few hundred bytes, even if the limit is smaller.
func DocumentUpTo(cfg *schema.Config, most int) (p schema.Policy, data []byte, err error) {
	for _, say := range []func(*schema.Config) schema.Policy{exact, byAgent, byEvent} {
		p = say(cfg)
		p.Fabric, p.ConfigVersion = cfg.Fabric, cfg.Version
		if data, err = schema.Marshal(&p); err != nil {
			return p, nil, fmt.Errorf("encoding the policy: %w", err)
		}
		if len(data) <= most {
			break
		}
	}
	return p, data, nil
}

// counts reports whether shims must know the hook.
func counts(h *schema.PolicyHook) bool { return h.Guards || h.Native || h.History }

// exact returns the policy with all details.
func exact(cfg *schema.Config) schema.Policy {
	p := schema.Policy{Hooks: []schema.PolicyHook{}}
	yielding := yielding(cfg)
	for i := range cfg.Hooks {
		h := RuleOf(&cfg.Hooks[i])
		to := kin{h.Event, h.Like}
		if !counts(&h) && yielding[to] == "" {
			continue
		}
		h.Like = yielding[to]
		p.Hooks = append(p.Hooks, h)
	}
	p.Overrides = overrides(cfg, p.Hooks)
	return p
}

// kin identifies the hooks of one event that run the same handler.
type kin struct {
	event schema.EventType
	like  string
}

// yielding returns a number for each kind of preset hook in the document. Numbers are
// enough, because handlers are not published.
func yielding(cfg *schema.Config) map[kin]string {
	all := map[kin]string{}
	for i := range cfg.Hooks {
		h := RuleOf(&cfg.Hooks[i])
		if k := (kin{h.Event, h.Like}); h.Preset && counts(&h) && all[k] == "" {
			all[k] = strconv.Itoa(len(all) + 1)
		}
	}
	return all
}

// overrides returns the overrides that drop at least one of the hooks.
func overrides(cfg *schema.Config, hooks []schema.PolicyHook) (kept []schema.Override) {
	droppable := map[schema.EventType]bool{}
	for i := range hooks {
		h := &hooks[i]
		droppable[h.Event] = droppable[h.Event] || h.Agent == "" && !h.System
	}
	for _, o := range cfg.Overrides {
		if droppable[o.Event] {
			kept = append(kept, schema.Override{Agent: o.Agent, Event: o.Event})
		}
	}
	return kept
}

// byAgent returns the policy without tools and without the hooks to which preset hooks
// yield.
func byAgent(cfg *schema.Config) schema.Policy {
	p := merged(cfg, func(h *schema.PolicyHook) {})
	p.Overrides = overrides(cfg, p.Hooks)
	return p
}

// byEvent returns the policy also without agents.
func byEvent(cfg *schema.Config) schema.Policy {
	return merged(cfg, func(h *schema.PolicyHook) { h.Agent, h.System = "", true })
}

// merged merges all hooks that are equal after coarsen.
func merged(cfg *schema.Config, coarsen func(*schema.PolicyHook)) schema.Policy {
	p := schema.Policy{Coarse: true, Hooks: []schema.PolicyHook{}}
	type key struct {
		event                   schema.EventType
		agent                   string
		system                  bool
		guards, native, history bool
	}
	at, more := map[key]int{}, map[int]int{}
	for i := range cfg.Hooks {
		h := RuleOf(&cfg.Hooks[i])
		if !counts(&h) {
			continue
		}
		h.Matcher, h.Like, h.Preset = "", "", false
		coarsen(&h)
		k := key{h.Event, h.Agent, h.System, h.Guards, h.Native, h.History}
		if j, ok := at[k]; ok {
			more[j]++
			continue
		}
		at[k] = len(p.Hooks)
		p.Hooks = append(p.Hooks, h)
	}
	for j, n := range more {
		p.Hooks[j].Hook = fmt.Sprintf("%.100s", p.Hooks[j].Hook) + fmt.Sprintf(" or one of %d others", n)
	}
	return p
}
