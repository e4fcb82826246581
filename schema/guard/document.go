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

// counts reports whether shims have to know of a hook for its own sake.
func counts(h *schema.PolicyHook) bool { return h.Guards || h.Native || h.History }

// exact says all of it.
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

// kin are the hooks of one event that run the same.
type kin struct {
	event schema.EventType
	like  string
}

// yielding are the kin of presets' hooks that stand in the document, as numbers:
// what is run is nobody's business.
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

// overrides are those that drop one of the hooks.
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

// byAgent leaves out which tools hooks are about, and to whom they yield.
func byAgent(cfg *schema.Config) schema.Policy {
	p := merged(cfg, func(h *schema.PolicyHook) {})
	p.Overrides = overrides(cfg, p.Hooks)
	return p
}

// byEvent leaves out for whom hooks are, too.
func byEvent(cfg *schema.Config) schema.Policy {
	return merged(cfg, func(h *schema.PolicyHook) { h.Agent, h.System = "", true })
}

// merged makes one hook of all that differ only in what is left out.
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
