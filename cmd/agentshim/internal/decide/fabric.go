package decide

import (
	"fmt"

	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// A fabric is the last policy of one fabric, or why it cannot be used.
type fabric struct {
	id     string
	noted  bool              // the first place says that it answered there
	memory bool              // it could not be kept, and is known in this process alone
	kept   *shimstate.Policy // nil: nothing that can be used is
	faulty error             // why not
	rules  map[schema.EventType]*guard.Rules
	// frozen are the freezes of the policy of, the last one that was looked at.
	frozen *guard.Freezes
	of     *shimstate.Policy
}

// about are the rules for an event; nil: no policy is known.
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

// freezes are those of the kept policy; nil: no agent is frozen.
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

// terminal are the tools that pass a freeze.
func (f *fabric) terminal() []string {
	if f.kept == nil {
		return nil
	}
	return f.kept.Terminal
}
