package decide

import (
	"fmt"

	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// A fabric is the last known policy of one fabric, or the reason why it is unusable.
type fabric struct {
	id     string
	noted  bool              // the list of the first URL contains it
	memory bool              // it could not be stored, and only this process knows it
	kept   *shimstate.Policy // nil: there is no usable policy
	faulty error             // why there is no usable policy
	rules  map[schema.EventType]*guard.Rules
	// frozen are the compiled freezes of the policy in the field of.
	frozen *guard.Freezes
	of     *shimstate.Policy
}

// about returns the rules for an event; nil: no policy is known.
func (f *fabric) about(t schema.EventType) *guard.Rules {
	if f.kept == nil {
		return nil
	}
	if r := f.rules[t]; r != nil {
		return r
	}
	var hooks []schema.PolicyHook
	for _, h := range f.kept.Hooks {
		if h.Event == t {
			hooks = append(hooks, h)
		}
	}
	var overrides []schema.Override
	for _, o := range f.kept.Overrides {
		if o.Event == t {
			overrides = append(overrides, o)
		}
	}
	rules, err := guard.Compile(hooks, overrides)
	if err != nil {
		f.unusable(err)
		return nil
	}
	if f.rules == nil {
		f.rules = map[schema.EventType]*guard.Rules{}
	}
	f.rules[t] = rules
	return rules
}

func (f *fabric) unusable(err error) {
	f.kept, f.faulty = nil, fmt.Errorf("the policy of config version %d is unusable: %w", f.kept.ConfigVersion, err)
}

// freezes returns the freezes of the policy; nil: no agent is frozen.
func (f *fabric) freezes() *guard.Freezes {
	switch {
	case f.kept == nil:
		return nil
	case f.of == f.kept:
		return f.frozen
	}
	frozen, err := guard.CompileFreezes(f.kept.Freezes)
	if err != nil {
		f.unusable(err)
		return nil
	}
	f.frozen, f.of = frozen, f.kept
	return frozen
}

// terminal returns the tools that pass a freeze.
func (f *fabric) terminal() []string {
	if f.kept == nil {
		return nil
	}
	return f.kept.Terminal
}
