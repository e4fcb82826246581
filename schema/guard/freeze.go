package guard

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// Freezes finds the freeze that refuses a call. Nil Freezes refuse nothing.
type Freezes struct {
	all   []schema.Freeze
	index match.Index
}

// CompileFreezes compiles freezes. It returns nil for an empty list.
func CompileFreezes(all []schema.Freeze) (*Freezes, error) {
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // documented above
	}
	f := &Freezes{all: all}
	for i := range all {
		m, err := match.Compile(all[i].Agents)
		if err != nil {
			return nil, fmt.Errorf("the freeze of %q: %w", all[i].Agents, err)
		}
		f.index.Add(i, m)
	}
	return f, nil
}

// Refuses returns the first freeze that refuses a call, or nil. A freeze never refuses a
// terminal tool. Every freeze refuses the calls of an unknown agent, and an unknown tool counts
// as not terminal.
func (f *Freezes) Refuses(c Call, terminal []string) *schema.Freeze {
	switch {
	case f == nil || c.Event != schema.PreToolUse || c.Tool != "" && schema.IsTerminal(c.Tool, terminal):
		return nil
	case c.Agent == schema.UnknownAgent:
		return &f.all[0]
	}
	if found := f.index.Find(c.Agent); len(found) > 0 {
		return &f.all[found[0]]
	}
	return nil
}

// Frozen is what shims need to know of freezes: their version, the active ones, and the tools
// that they let pass.
type Frozen struct {
	Version  uint64
	Freezes  []schema.Freeze
	Terminal []string
}

// DocumentFrozen is [Document] with the active freezes. Freezes take precedence: if there is
// not enough space, it simplifies the hooks.
func DocumentFrozen(cfg *schema.Config, z Frozen) (p schema.Policy, data []byte, err error) {
	of := schema.Policy{FreezeVersion: z.Version, Freezes: z.Freezes}
	if len(z.Freezes) > 0 {
		of.Terminal = z.Terminal
	}
	taken, err := schema.Marshal(&of)
	if err != nil {
		return p, nil, fmt.Errorf("encoding what is frozen: %w", err)
	}
	if p, _, err = DocumentUpTo(cfg, schema.MaxPolicy-len(taken)); err != nil {
		return p, nil, err
	}
	p.FreezeVersion, p.Freezes, p.Terminal = of.FreezeVersion, of.Freezes, of.Terminal
	if data, err = schema.Marshal(&p); err != nil {
		return p, nil, fmt.Errorf("encoding the policy: %w", err)
	}
	return p, data, nil
}
